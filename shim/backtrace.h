/* SPDX-License-Identifier: MIT */
#ifndef SHUNT_SHIM_BACKTRACE_H
#define SHUNT_SHIM_BACKTRACE_H
#endif
