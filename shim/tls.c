/* SPDX-License-Identifier: MIT */
#include "shim/tls.h"
