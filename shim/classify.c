/* SPDX-License-Identifier: MIT */
#include "shim/classify.h"
