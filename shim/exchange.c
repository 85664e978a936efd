/* SPDX-License-Identifier: MIT */
#include "shim/exchange.h"
