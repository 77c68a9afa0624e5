// SPDX-License-Identifier: GPL-2.0-only
/*
 * btf-ids MODULE BASE - fill in the sets of functions for BPF programs
 *
 * The compiler leaves numbers in the section .BTF_ids empty, and says in the name of
 * a symbol what belongs there. The kernel's own build has resolve_btfids for that;
 * headers of some distributions come without. This does what a module of ours needs:
 * functions, and the sets that they are in. BASE is the kernel's BTF, raw or in an
 * ELF file, and MODULE has a .BTF section that was made on top of it.
 */
#include <elf.h>
#include <err.h>
#include <fcntl.h>
#include <linux/btf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define FUNC_PREFIX "__BTF_ID__func__"
#define SET_PREFIX "__BTF_ID__set8__"

struct file {
	const char *path;
	char *data;
	size_t len;
};

struct btf {
	const char *types;
	size_t types_len;
	const char *strings;
	size_t strings_len;
};

static struct file map(const char *path, int writable)
{
	struct file f = { .path = path };
	int fd = open(path, writable ? O_RDWR : O_RDONLY);
	ssize_t n;
	struct stat st;

	if (fd < 0 || fstat(fd, &st))
		err(1, "%s", path);
	f.len = st.st_size;
	if (writable) {
		f.data = mmap(NULL, f.len, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		if (f.data == MAP_FAILED)
			err(1, "%s", path);
	} else {
		/* Files of sysfs can be read, and not always mapped. */
		size_t at = 0;

		f.data = malloc(f.len + 1);
		if (!f.data)
			err(1, "%s", path);
		while (at < f.len && (n = read(fd, f.data + at, f.len - at)) > 0)
			at += n;
		f.len = at;
	}
	close(fd);
	return f;
}

static void need(const struct file *f, size_t off, size_t len)
{
	if (off > f->len || len > f->len - off)
		errx(1, "%s: ends too early", f->path);
}

static Elf64_Shdr *sections(const struct file *f, unsigned int *n)
{
	Elf64_Ehdr *eh = (Elf64_Ehdr *)f->data;

	need(f, 0, sizeof(*eh));
	if (memcmp(eh->e_ident, ELFMAG, SELFMAG) || eh->e_ident[EI_CLASS] != ELFCLASS64 ||
	    eh->e_shentsize != sizeof(Elf64_Shdr))
		errx(1, "%s: not a 64-bit ELF file", f->path);
	*n = eh->e_shnum;
	need(f, eh->e_shoff, (size_t)*n * sizeof(Elf64_Shdr));
	if (eh->e_shstrndx >= *n)
		errx(1, "%s: sections without names", f->path);
	return (Elf64_Shdr *)(f->data + eh->e_shoff);
}

/* NULL: there is none of that name */
static Elf64_Shdr *section(const struct file *f, const char *name, unsigned int *index)
{
	Elf64_Ehdr *eh = (Elf64_Ehdr *)f->data;
	unsigned int i, n;
	Elf64_Shdr *sh = sections(f, &n), *names = &sh[eh->e_shstrndx];

	for (i = 0; i < n; i++) {
		size_t at = names->sh_offset + sh[i].sh_name;

		need(f, at, strlen(name) + 1);
		if (strcmp(f->data + at, name))
			continue;
		need(f, sh[i].sh_offset, sh[i].sh_size);
		if (index)
			*index = i;
		return &sh[i];
	}
	return NULL;
}

static struct btf btf_of(const struct file *f)
{
	const struct btf_header *h;
	size_t off = 0, len = f->len;

	if (f->len > SELFMAG && !memcmp(f->data, ELFMAG, SELFMAG)) {
		Elf64_Shdr *sh = section(f, ".BTF", NULL);

		if (!sh)
			errx(1, "%s: has no BTF", f->path);
		off = sh->sh_offset;
		len = sh->sh_size;
	}
	h = (const struct btf_header *)(f->data + off);
	if (len < sizeof(*h) || h->magic != BTF_MAGIC || h->hdr_len > len ||
	    h->type_off > len - h->hdr_len ||
	    h->type_len > len - h->hdr_len - h->type_off ||
	    h->str_off > len - h->hdr_len ||
	    h->str_len > len - h->hdr_len - h->str_off)
		errx(1, "%s: no BTF that is understood", f->path);
	return (struct btf){
		.types = (const char *)h + h->hdr_len + h->type_off,
		.types_len = h->type_len,
		.strings = (const char *)h + h->hdr_len + h->str_off,
		.strings_len = h->str_len,
	};
}

static size_t type_size(const struct btf_type *t)
{
	size_t n = BTF_INFO_VLEN(t->info);

	switch (BTF_INFO_KIND(t->info)) {
	case BTF_KIND_INT:
	case BTF_KIND_VAR:
	case BTF_KIND_DECL_TAG:
		return sizeof(*t) + 4;
	case BTF_KIND_ARRAY:
		return sizeof(*t) + sizeof(struct btf_array);
	case BTF_KIND_STRUCT:
	case BTF_KIND_UNION:
		return sizeof(*t) + n * sizeof(struct btf_member);
	case BTF_KIND_ENUM:
		return sizeof(*t) + n * sizeof(struct btf_enum);
	case BTF_KIND_ENUM64:
		return sizeof(*t) + n * 12;
	case BTF_KIND_FUNC_PROTO:
		return sizeof(*t) + n * sizeof(struct btf_param);
	case BTF_KIND_DATASEC:
		return sizeof(*t) + n * sizeof(struct btf_var_secinfo);
	default:
		return sizeof(*t);
	}
}

/*
 * How many types there are; or, with a name of @len bytes, which of them, from 1, is
 * the function of that name, 0: none. Strings of a module's BTF go on where those of
 * its base end, at @strings_before.
 */
static unsigned int walk(const struct btf *b, const char *name, size_t len,
			 size_t strings_before)
{
	size_t at = 0, str;
	unsigned int i;

	for (i = 1; at + sizeof(struct btf_type) <= b->types_len; i++) {
		const struct btf_type *t = (const struct btf_type *)(b->types + at);

		at += type_size(t);
		if (!name || BTF_INFO_KIND(t->info) != BTF_KIND_FUNC ||
		    t->name_off < strings_before)
			continue;
		str = t->name_off - strings_before;
		if (str < b->strings_len && len < b->strings_len - str &&
		    !strncmp(b->strings + str, name, len) && !b->strings[str + len])
			return i;
	}
	return name ? 0 : i - 1;
}

int main(int argc, char **argv)
{
	struct file module, base_file;
	struct btf base, own;
	Elf64_Shdr *ids, *symtab, *sh;
	unsigned int ids_index, before, n, done = 0;
	size_t i;

	if (argc != 3)
		errx(2, "usage: btf-ids MODULE BASE");
	module = map(argv[1], 1);
	base_file = map(argv[2], 0);
	base = btf_of(&base_file);
	own = btf_of(&module);
	before = walk(&base, NULL, 0, 0);
	ids = section(&module, ".BTF_ids", &ids_index);
	symtab = section(&module, ".symtab", NULL);
	sh = sections(&module, &n);
	if (!ids || !symtab || symtab->sh_link >= n)
		errx(1, "%s: no functions for BPF programs", argv[1]);
	for (i = 0; i < symtab->sh_size / sizeof(Elf64_Sym); i++) {
		Elf64_Sym *sym = (Elf64_Sym *)(module.data + symtab->sh_offset) + i;
		size_t str = sh[symtab->sh_link].sh_offset + sym->st_name, len;
		unsigned int id;
		__u32 *word;
		char *name;

		if (sym->st_shndx != ids_index || !sym->st_name)
			continue;
		need(&module, str, 1);
		name = module.data + str;
		if (sym->st_value > ids->sh_size - 8 || sym->st_value % 4)
			errx(1, "%s: symbol %s is somewhere else", argv[1], name);
		word = (__u32 *)(module.data + ids->sh_offset + sym->st_value);
		if (!strncmp(name, SET_PREFIX, strlen(SET_PREFIX))) {
			/* the count and flags, then pairs of number and flags */
			word[0] = sym->st_size / 8 - 1;
			continue;
		}
		if (strncmp(name, FUNC_PREFIX, strlen(FUNC_PREFIX)))
			continue;
		name += strlen(FUNC_PREFIX);
		/* what makes the symbol unique stands behind the last two underscores */
		for (len = strlen(name); len && strncmp(name + len, "__", 2); len--)
			;
		id = walk(&own, name, len, base.strings_len);
		if (!id)
			errx(1, "%s: function %.*s has no BTF", argv[1], (int)len, name);
		word[0] = before + id;
		done++;
	}
	if (!done)
		errx(1, "%s: no functions for BPF programs", argv[1]);
	return 0;
}
