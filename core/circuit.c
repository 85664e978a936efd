/* SPDX-License-Identifier: MIT */
#include "core/circuit.h"
