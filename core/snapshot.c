/* SPDX-License-Identifier: MIT */
#include "core/snapshot.h"
