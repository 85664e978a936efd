/* SPDX-License-Identifier: MIT */
#include "core/histogram.h"
