/* SPDX-License-Identifier: MIT */
#include "shim/inside.h"
