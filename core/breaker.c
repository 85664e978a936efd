/* SPDX-License-Identifier: MIT */
#include "core/breaker.h"
