// SPDX-License-Identifier: MIT OR GPL-2.0
#include "limit.h"

bool limit_pass(struct limit *l, unsigned int burst, uint64_t each_ns, uint64_t now,
		unsigned int *swallowed)
{
	const uint64_t more = l->at ? (now - l->at) / each_ns : burst;

	if (more >= burst - l->left) {
		l->left = burst;
		l->at = now;
	} else {
		l->left += (unsigned int)more;
		l->at += more * each_ns;
	}
	if (!l->left) {
		l->swallowed++;
		return false;
	}
	l->left--;
	*swallowed = l->swallowed;
	l->swallowed = 0;
	return true;
}

void limit_back(struct limit *l)
{
	l->left++;
}
