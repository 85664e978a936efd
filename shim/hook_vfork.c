/* SPDX-License-Identifier: MIT */
/*
 * vfork returns twice into one frame: what the child leaves on the stack is what the parent finds.
 * So the wrapper keeps its return address in thread-local storage, which the two share, and marks
 * the thread for as long as the child runs on it. A vfork by a vfork child goes straight to the
 * real one: the mark and the address are its parent's.
 */
#include "shim/inside.h"
#include "shim/real.h"

__attribute__((used)) static _Thread_local void *vfork_return;

/* Called from below. Until it is resolved the entry is a C function: it must not return twice. */
__attribute__((used)) static void *real_vfork(void)
{
	real_resolve();
	return (void *)real()->vfork;
}

#define TEXT_OF(name) #name
#define TEXT(name) TEXT_OF(name)
#define BEGIN(name) \
	".text\n" \
	".globl " TEXT(name) "\n" \
	".type " TEXT(name) ", %function\n" \
	".balign 16\n" \
	TEXT(name) ":\n" \
	".cfi_startproc\n"
#define END(name) \
	".cfi_endproc\n" \
	".size " TEXT(name) ", .-" TEXT(name) "\n"

#if defined(__x86_64__)

/*
 * The mark first: a signal handler that comes after the address is stored must not overwrite it by
 * a vfork of its own. The child leaves by a jump: with a shadow stack, which it shares too, a return
 * would take the parent's entry away.
 */
__asm__(BEGIN(HOOK_NAME(vfork))
	"	endbr64\n"
	"	subq	$8, %rsp\n"
	"	.cfi_adjust_cfa_offset 8\n"
	"	call	real_vfork\n"
	"	addq	$8, %rsp\n"
	"	.cfi_adjust_cfa_offset -8\n"
	"	movq	inside_vfork@gottpoff(%rip), %rdx\n"
	"	cmpb	$0, %fs:(%rdx)\n"
	"	jne	1f\n"
	"	movb	$1, %fs:(%rdx)\n"
	"	movq	vfork_return@gottpoff(%rip), %rcx\n"
	"	popq	%rsi\n"
	"	.cfi_adjust_cfa_offset -8\n"
	"	.cfi_register %rip, %rsi\n"
	"	movq	%rsi, %fs:(%rcx)\n"
	"	call	*%rax\n"
	"	movq	vfork_return@gottpoff(%rip), %rcx\n"
	"	movq	%fs:(%rcx), %rsi\n"
	"	testl	%eax, %eax\n"
	"	jz	2f\n"
	"	movq	inside_vfork@gottpoff(%rip), %rdx\n"
	"	movb	$0, %fs:(%rdx)\n"
	"	pushq	%rsi\n"
	"	.cfi_adjust_cfa_offset 8\n"
	"	.cfi_offset %rip, -8\n"
	"	ret\n"
	"2:\n"
	"	.cfi_adjust_cfa_offset -8\n"
	"	.cfi_register %rip, %rsi\n"
	"	notrack jmp	*%rsi\n"
	"1:\n"
	"	.cfi_adjust_cfa_offset 8\n"
	"	.cfi_offset %rip, -8\n"
	"	jmp	*%rax\n"
	END(HOOK_NAME(vfork)));

#elif defined(__aarch64__)

__asm__(BEGIN(HOOK_NAME(vfork))
	"	hint	34\n" /* bti c */
	"	stp	x29, x30, [sp, -16]!\n"
	"	.cfi_adjust_cfa_offset 16\n"
	"	.cfi_offset x29, -16\n"
	"	.cfi_offset x30, -8\n"
	"	bl	real_vfork\n"
	"	ldp	x29, x30, [sp], 16\n"
	"	.cfi_adjust_cfa_offset -16\n"
	"	.cfi_restore x29\n"
	"	.cfi_restore x30\n"
	"	mov	x16, x0\n"
	"	mrs	x1, tpidr_el0\n"
	"	adrp	x2, :gottprel:inside_vfork\n"
	"	ldr	x2, [x2, :gottprel_lo12:inside_vfork]\n"
	"	ldrb	w3, [x1, x2]\n"
	"	cbnz	w3, 1f\n"
	"	mov	w3, 1\n"
	"	strb	w3, [x1, x2]\n"
	"	adrp	x2, :gottprel:vfork_return\n"
	"	ldr	x2, [x2, :gottprel_lo12:vfork_return]\n"
	"	str	x30, [x1, x2]\n"
	"	blr	x16\n"
	"	mrs	x1, tpidr_el0\n"
	"	adrp	x2, :gottprel:vfork_return\n"
	"	ldr	x2, [x2, :gottprel_lo12:vfork_return]\n"
	"	ldr	x30, [x1, x2]\n"
	"	cbz	w0, 2f\n"
	"	adrp	x2, :gottprel:inside_vfork\n"
	"	ldr	x2, [x2, :gottprel_lo12:inside_vfork]\n"
	"	strb	wzr, [x1, x2]\n"
	"2:	ret\n"
	"1:	br	x16\n"
	END(HOOK_NAME(vfork)));

#endif
