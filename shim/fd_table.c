/* SPDX-License-Identifier: MIT */
#include "shim/fd_table.h"
