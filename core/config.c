/* SPDX-License-Identifier: MIT */
#include "core/config.h"
