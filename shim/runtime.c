/* SPDX-License-Identifier: MIT */
#include "shim/runtime.h"
