/* SPDX-License-Identifier: MIT */
#include "shim/copies.h"

#include <link.h>
#include <stdint.h>
#include <string.h>

/* What a copy is known by: an ELF note. */
#define NOTE_NAME "shunt"
#define NOTE_TYPE 1

__asm__(".pushsection .note.shunt, \"a\", %note\n"
	".balign 4\n"
	"shunt_note:\n"
	".long 6, 0, 1\n"
	".asciz \"" NOTE_NAME "\"\n"
	".balign 4\n"
	".popsection\n");

extern const char shunt_note[] __attribute__((visibility("hidden")));

static size_t padded(size_t size, size_t alignment)
{
	return (size + alignment - 1) & ~(alignment - 1);
}

/* Our note in a segment of notes, or NULL. */
static const char *find_note(const char *at, size_t size, size_t alignment)
{
	while (size >= sizeof(ElfW(Nhdr))) {
		const ElfW(Nhdr) *note = (const void *)at;
		const char *name = at + sizeof(*note);
		size_t length = sizeof(*note) + padded(note->n_namesz, alignment) +
				padded(note->n_descsz, alignment);

		if (length > size)
			return NULL;
		if (note->n_type == NOTE_TYPE && note->n_namesz == sizeof(NOTE_NAME) &&
				memcmp(name, NOTE_NAME, sizeof(NOTE_NAME)) == 0)
			return at;
		at += length;
		size -= length;
	}
	return NULL;
}

/* Stops at the first copy: the order is the one in which the loader looks symbols up. */
static int look(struct dl_phdr_info *object, size_t size, void *ret_found)
{
	(void)size;
	for (int i = 0; i < object->dlpi_phnum; i++) {
		const ElfW(Phdr) *segment = &object->dlpi_phdr[i];
		const char *found;

		if (segment->p_type != PT_NOTE)
			continue;
		found = find_note((const char *)object->dlpi_addr + segment->p_vaddr,
				segment->p_memsz, segment->p_align == 8 ? 8 : 4);
		if (found) {
			*(const char **)ret_found = found;
			return 1;
		}
	}
	return 0;
}

bool copies_is_first(void)
{
	const char *found = NULL;

	dl_iterate_phdr(look, &found);
	return !found || found == shunt_note;
}
