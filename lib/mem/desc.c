// SPDX-License-Identifier: MIT OR GPL-2.0
#include <endian.h>
#include <errno.h>
#include <string.h>

#include "desc.h"

int rgate_desc_parse(struct rgate_remote *remote, const void *buf, size_t len)
{
	struct rgate_desc d;
	uint64_t addr, length;

	if (len != sizeof(d))
		return -EPROTO;
	memcpy(&d, buf, sizeof(d));
	if (le16toh(d.magic) != RGATE_DESC_MAGIC)
		return -EPROTO;
	if (d.version != RGATE_DESC_VERSION)
		return -EPROTONOSUPPORT;
	addr = le64toh(d.addr);
	length = le64toh(d.length);
	if (d.access & ~RGATE_ACCESS_ALL || d.reserved || !length || addr + length - 1 < addr)
		return -EPROTO;
	*remote = (struct rgate_remote){
		.addr = addr,
		.length = length,
		.rkey = le32toh(d.rkey),
		.access = d.access,
		.epoch = le32toh(d.epoch),
	};
	return 0;
}

void rgate_desc_fill(struct rgate_desc *desc, uint32_t rkey, uint64_t addr, uint64_t length,
		     uint32_t access, uint32_t epoch)
{
	*desc = (struct rgate_desc){
		.magic = htole16(RGATE_DESC_MAGIC),
		.version = RGATE_DESC_VERSION,
		.access = (uint8_t)access,
		.rkey = htole32(rkey),
		.addr = htole64(addr),
		.length = htole64(length),
		.epoch = htole32(epoch),
	};
}
