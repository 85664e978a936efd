/* SPDX-License-Identifier: MIT */
#include "core/target.h"
