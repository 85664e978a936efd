/* SPDX-License-Identifier: MIT */
#include "core/clock.h"
