/* SPDX-License-Identifier: MIT */
#include "shim/endpoint.h"
