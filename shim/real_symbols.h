/* SPDX-License-Identifier: MIT */
/*
 * Every symbol that is hooked, once, and the system call of the same arguments where there is one.
 * The table of real functions, its filling, the version script and the export check all read this
 * list; no #include here, for the version script's sake.
 */
#ifndef SHUNT_SHIM_REAL_SYMBOLS_H
#define SHUNT_SHIM_REAL_SYMBOLS_H

#define REAL_SYMBOLS(SYMBOL) \
	SYMBOL(read, SYS_read) \
	SYMBOL(write, SYS_write) \
	SYMBOL(close, SYS_close) \
	SYMBOL(syscall, ANY_CALL) \
	SYMBOL(fcntl, SYS_fcntl) \
	SYMBOL(fcntl64, SYS_fcntl) \
	SYMBOL(connect, SYS_connect) \
	SYMBOL(send, NO_CALL) \
	SYMBOL(sendto, SYS_sendto) \
	SYMBOL(sendmsg, SYS_sendmsg) \
	SYMBOL(sendmmsg, SYS_sendmmsg) \
	SYMBOL(writev, SYS_writev) \
	SYMBOL(sendfile, SYS_sendfile) \
	SYMBOL(sendfile64, SYS_sendfile) \
	SYMBOL(splice, SYS_splice) \
	SYMBOL(recv, NO_CALL) \
	SYMBOL(recvfrom, SYS_recvfrom) \
	SYMBOL(recvmsg, SYS_recvmsg) \
	SYMBOL(recvmmsg, NO_CALL) \
	SYMBOL(readv, SYS_readv) \
	SYMBOL(__read_chk, SYS_read) \
	SYMBOL(__recv_chk, NO_CALL) \
	SYMBOL(__recvfrom_chk, NO_CALL) \
	SYMBOL(socket, SYS_socket) \
	SYMBOL(socketpair, SYS_socketpair) \
	SYMBOL(accept, SYS_accept) \
	SYMBOL(accept4, SYS_accept4) \
	SYMBOL(close_range, SYS_close_range) \
	SYMBOL(closefrom, NO_CALL) \
	SYMBOL(dup, SYS_dup) \
	SYMBOL(dup2, NO_CALL) \
	SYMBOL(dup3, SYS_dup3) \
	SYMBOL(fdopen, NO_CALL) \
	SYMBOL(shutdown, SYS_shutdown) \
	SYMBOL(setsockopt, SYS_setsockopt) \
	SYMBOL(getsockopt, SYS_getsockopt) \
	SYMBOL(poll, NO_CALL) \
	SYMBOL(ppoll, NO_CALL) \
	SYMBOL(__poll_chk, NO_CALL) \
	SYMBOL(__ppoll_chk, NO_CALL) \
	SYMBOL(select, NO_CALL) \
	SYMBOL(pselect, NO_CALL) \
	SYMBOL(getaddrinfo, NO_CALL) \
	SYMBOL(gethostbyname, NO_CALL) \
	SYMBOL(gethostbyname2, NO_CALL) \
	SYMBOL(gethostbyname_r, NO_CALL) \
	SYMBOL(gethostbyname2_r, NO_CALL) \
	SYMBOL(_exit, SYS_exit_group) \
	SYMBOL(_Exit, SYS_exit_group) \
	SYMBOL(quick_exit, SYS_exit_group) \
	SYMBOL(vfork, NO_CALL) \
	SYMBOL(unshare, SYS_unshare) \
	SYMBOL(setns, SYS_setns) \
	SYMBOL(prctl, SYS_prctl)

#endif
