/* SPDX-License-Identifier: MIT */
#include "core/cell.h"
