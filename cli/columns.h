/* SPDX-License-Identifier: MIT */
#ifndef SHUNT_CLI_COLUMNS_H
#define SHUNT_CLI_COLUMNS_H
#endif
