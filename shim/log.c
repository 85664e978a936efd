/* SPDX-License-Identifier: MIT */
#include "shim/log.h"
