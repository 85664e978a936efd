/* SPDX-License-Identifier: MIT */
#include "core/text.h"
