/* SPDX-License-Identifier: MIT */
#include "shim/names.h"
