/* SPDX-License-Identifier: MIT */
#include "core/event.h"
