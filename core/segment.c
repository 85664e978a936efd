/* SPDX-License-Identifier: MIT */
#include "core/segment.h"
