/* SPDX-License-Identifier: MIT */
#ifndef SHUNT_CLI_STATE_H
#define SHUNT_CLI_STATE_H
#endif
