/* SPDX-License-Identifier: MIT */
#include "shim/hold.h"

#include "shim/below.h"
#include "shim/hold_epoll.h"
#include "shim/hold_poll.h"
#include "shim/hold_select.h"
#include "shim/select_range.h"

bool hold_start(hold_ask *ask)
{
	if (!withheld_start(ask) || !select_range_start())
		return false;
	REPLACE(epoll_ctl, hold_epoll_ctl);
	REPLACE(epoll_wait, hold_epoll_wait);
	REPLACE(epoll_pwait, hold_epoll_pwait);
	REPLACE(epoll_pwait2, hold_epoll_pwait2);
	REPLACE(poll, hold_poll);
	REPLACE(__poll_chk, hold_poll_chk);
	REPLACE(ppoll, hold_ppoll);
	REPLACE(__ppoll_chk, hold_ppoll_chk);
	REPLACE(select, hold_select);
	REPLACE(pselect, hold_pselect);
	return true;
}
