/* SPDX-License-Identifier: MIT */
#include "core/outcome.h"
