/* SPDX-License-Identifier: MIT */
#include "shim/timer.h"
