/* SPDX-License-Identifier: MIT */
#include "cli/symbols.h"

#include <elf.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>

#include "cli/reader.h"

#define SECTIONS_MAX 4096
#define TABLE_SIZE_MAX (64u << 20)

struct table {
	ElfW(Sym) *symbols;
	size_t count;
	char *names;
	size_t names_size;
};

static bool table_read(int fd, const ElfW(Shdr) *symbols, const ElfW(Shdr) *names,
		struct table *ret)
{
	if (symbols->sh_entsize != sizeof(*ret->symbols) || symbols->sh_size > TABLE_SIZE_MAX ||
			names->sh_size == 0 || names->sh_size > TABLE_SIZE_MAX)
		return false;
	*ret = (struct table){
		.symbols = reader_copy(fd, symbols->sh_offset, symbols->sh_size),
		.count = symbols->sh_size / sizeof(*ret->symbols),
		.names = reader_copy(fd, names->sh_offset, names->sh_size),
		.names_size = names->sh_size,
	};
	if (ret->symbols && ret->names) {
		/* So that every name in it ends. */
		ret->names[ret->names_size - 1] = '\0';
		return true;
	}
	free(ret->symbols);
	free(ret->names);
	return false;
}

static bool table_find(int fd, struct table *ret)
{
	ElfW(Ehdr) header;
	ElfW(Shdr) *sections;
	bool is_found = false;

	if (!reader_bytes(fd, 0, &header, sizeof(header)) ||
			memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 ||
			header.e_shentsize != sizeof(*sections) || header.e_shnum > SECTIONS_MAX)
		return false;
	sections = reader_copy(fd, header.e_shoff, header.e_shnum * sizeof(*sections));
	for (size_t i = 0; sections && i < header.e_shnum && !is_found; i++) {
		if (sections[i].sh_type == SHT_DYNSYM && sections[i].sh_link < header.e_shnum)
			is_found = table_read(fd, &sections[i], &sections[sections[i].sh_link],
					ret);
	}
	free(sections);
	return is_found;
}

static uint32_t name_bit(const char *name, const char *const names[], size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (strcmp(name, names[i]) == 0)
			return UINT32_C(1) << i;
	}
	return 0;
}

bool symbols_find(int fd, const char *const names[], size_t count, uint32_t *ret_defined,
		uint32_t *ret_wanted)
{
	struct table table;

	if (!table_find(fd, &table))
		return false;
	*ret_defined = *ret_wanted = 0;
	for (size_t i = 0; i < table.count; i++) {
		const ElfW(Sym) *symbol = &table.symbols[i];
		uint32_t bit = 0;

		if (symbol->st_name < table.names_size)
			bit = name_bit(table.names + symbol->st_name, names, count);
		if (symbol->st_shndx == SHN_UNDEF)
			*ret_wanted |= bit;
		else
			*ret_defined |= bit;
	}
	free(table.symbols);
	free(table.names);
	return true;
}
