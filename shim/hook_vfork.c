/* SPDX-License-Identifier: MIT */
/*
 * vfork returns twice into one frame: what the child leaves on the stack is what the parent finds.
 * So the wrapper keeps its return address in thread-local storage, which the two share, and marks
 * the thread for as long as the child runs on it. A vfork by a vfork child goes straight to the
 * real one: the mark and the address are its parent's.
 */
#include <stdatomic.h>
#include <stdbool.h>

#include "shim/inside.h"
#include "shim/real.h"
#include "shim/runtime.h"

static _Thread_local void *vfork_return;

struct vfork_way {
	void *real;
	bool is_straight; /* jump there: no mark, no return address to keep */
};

/*
 * Called from below. The mark first: a signal handler that comes after the address is stored must
 * not overwrite it by a vfork of its own. Until it is resolved the entry is a C function of ours,
 * which must not return twice.
 */
__attribute__((used)) static struct vfork_way vfork_begins(void *return_address)
{
	bool is_straight = inside_vfork;

	real_resolve();
	if (!is_straight) {
		atomic_store_explicit(&inside_vfork_pid, runtime.pid, memory_order_relaxed);
		inside_vfork_frame = (uint32_t)(uintptr_t)__builtin_frame_address(0);
		inside_vfork = INSIDE_VFORK;
		/* Only for signal handlers of this thread. */
		atomic_signal_fence(memory_order_release);
		vfork_return = return_address;
	}
	return (struct vfork_way){ (void *)real()->vfork, is_straight };
}

/* Called from below, in the child and then in the parent. Where to return to. */
__attribute__((used)) static void *vfork_ended(int result)
{
	void *return_address = vfork_return;

	atomic_signal_fence(memory_order_release);
	if (result != 0)
		inside_vfork = INSIDE_NO_VFORK;
	return return_address;
}

#define TEXT_OF(name) #name
#define TEXT(name) TEXT_OF(name)
#define BEGIN(name) \
	".text\n" \
	".globl " TEXT(name) "\n" \
	".type " TEXT(name) ", %function\n" \
	".balign 16\n" \
	TEXT(name) ":\n"
#define END(name) \
	".size " TEXT(name) ", .-" TEXT(name) "\n"

#if defined(__x86_64__)

/* The child leaves by a jump: with a shadow stack, which it shares too, a return would take the
 * parent's entry away. */
__asm__(BEGIN(HOOK_NAME(vfork))
	"	endbr64\n"
	"	movq	(%rsp), %rdi\n"
	"	subq	$8, %rsp\n"
	"	call	vfork_begins\n"
	"	addq	$8, %rsp\n"
	"	testb	%dl, %dl\n"
	"	jnz	1f\n"
	"	addq	$8, %rsp\n"
	"	call	*%rax\n"
	"	pushq	%rax\n"
	"	subq	$8, %rsp\n"
	"	movl	%eax, %edi\n"
	"	call	vfork_ended\n"
	"	movq	%rax, %rcx\n"
	"	addq	$8, %rsp\n"
	"	popq	%rax\n"
	"	testl	%eax, %eax\n"
	"	jz	2f\n"
	"	pushq	%rcx\n"
	"	ret\n"
	"2:	notrack jmp	*%rcx\n"
	"1:	jmp	*%rax\n"
	END(HOOK_NAME(vfork)));

#elif defined(__aarch64__)

__asm__(BEGIN(HOOK_NAME(vfork))
	"	hint	34\n" /* bti c */
	"	stp	x29, x30, [sp, -16]!\n"
	"	mov	x0, x30\n"
	"	bl	vfork_begins\n"
	"	ldp	x29, x30, [sp], 16\n"
	"	mov	x16, x0\n"
	"	tbnz	w1, 0, 1f\n"
	"	blr	x16\n"
	"	str	x0, [sp, -16]!\n"
	"	bl	vfork_ended\n"
	"	mov	x30, x0\n"
	"	ldr	x0, [sp], 16\n"
	"	ret\n"
	"1:	br	x16\n"
	END(HOOK_NAME(vfork)));

#endif
