/* SPDX-License-Identifier: MIT */
#include "core/window.h"
