/* SPDX-License-Identifier: MIT */
#include "shim/gate.h"
