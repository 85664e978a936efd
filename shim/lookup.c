/* SPDX-License-Identifier: MIT */
#include "shim/lookup.h"
