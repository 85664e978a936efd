/* SPDX-License-Identifier: MIT */
#ifndef SHUNT_CLI_TERMINAL_H
#define SHUNT_CLI_TERMINAL_H
#endif
