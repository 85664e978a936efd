/* SPDX-License-Identifier: MIT */
#include "shim/real.h"
