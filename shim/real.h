/* SPDX-License-Identifier: MIT */
/*
 * The list of hooked symbols and the table of the real functions behind them. One line a symbol:
 * the table, its filling, the version script's check and the export test all read this list.
 */
#ifndef SHUNT_SHIM_REAL_H
#define SHUNT_SHIM_REAL_H

#endif
