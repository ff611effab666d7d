// The caching allocator of the GPU with values, in addresses only: the values lie on the host.
//
// It keeps freed blocks and gives them out again, as torch does. A request that fits no free block
// takes a new segment of the driver. If the driver has no room, all free segments go back to it, for
// which the host waits for the GPU. Blocks join only within their segment. With expandable segments
// there is one segment that grows, so all free neighbours join.

#pragma once

#include <c10/util/Exception.h>

#include <cstdlib>
#include <cstring>
#include <map>

#include "cuda_time.h"

namespace gpu_blocks {

// Sizes in bytes, apart from GRAIN a sixty-fourth of those of torch: scripts need few bytes then.
const int64_t GRAIN = 512;  // to which sizes are rounded
const int64_t PAGE = 32 << 10;  // in multiples of which the driver gives memory
const int64_t SMALL = 16 << 10;  // up to which blocks share a page
const int64_t MEDIUM = 160 << 10;  // up to which blocks share a segment of MEDIUM_SEGMENT
const int64_t MEDIUM_SEGMENT = 320 << 10;
const int64_t GAP = 1LL << 40;  // between segments, so that they are never neighbours
const int64_t MALLOC_NS = 4'000'000;  // of the host, for a segment or a page of the driver
const int64_t FREE_NS = 4'000'000;  // of the host, to give one back

struct Block {
  int64_t segment;  // its first address
  int64_t size;
  bool is_small;
  bool is_free;
};

int64_t capacity = 0;  // bytes of the GPU; 0: no limit, and nothing is modelled
int64_t reserved = 0;  // bytes that the driver has given
int64_t retries = 0;  // how often the driver had no room at first
int64_t next_segment = GAP;
std::map<int64_t, Block> blocks;  // by address
std::map<bool, int64_t> growing;  // the addresses of the expandable segments: small and large

bool is_expandable() {
  for (const char* name : {"PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF"}) {
    const char* value = std::getenv(name);
    if (value && std::strstr(value, "expandable_segments:True")) {
      return true;
    }
  }
  return false;
}

int64_t rounded_to(int64_t size, int64_t grain) {
  return (size + grain - 1) / grain * grain;
}

// Takes memory of the driver. Returns whether it had room.
bool take(int64_t size) {
  if (reserved + size > capacity) {
    return false;
  }
  gpu_time::wait_until(gpu_time::now() + MALLOC_NS);
  reserved += size;
  return true;
}

// Gives all free memory back that the driver can take: whole segments, or whole pages at the end.
void release_free() {
  gpu_time::synchronize();
  for (auto at = blocks.begin(); at != blocks.end();) {
    Block& block = at->second;
    auto next = std::next(at);
    bool is_last = next == blocks.end() || next->second.segment != block.segment;
    bool is_growing = block.segment == growing[block.is_small];
    if (block.is_free && is_last && (is_growing || at->first == block.segment)) {
      gpu_time::wait_until(gpu_time::now() + FREE_NS);
      int64_t kept = is_growing ? rounded_to(at->first, PAGE) - at->first : 0;
      kept = std::min(kept, block.size);
      reserved -= block.size - kept;
      block.size = kept;
      if (!kept) {
        blocks.erase(at);
      }
    }
    at = next;
  }
}

// Returns the smallest free block that is large enough, or the end.
std::map<int64_t, Block>::iterator find_free(int64_t size, bool is_small) {
  auto best = blocks.end();
  for (auto at = blocks.begin(); at != blocks.end(); at++) {
    const Block& block = at->second;
    bool fits = block.is_free && block.is_small == is_small && block.size >= size;
    if (fits && (best == blocks.end() || block.size < best->second.size)) {
      best = at;
    }
  }
  return best;
}

// Joins a free block with the free blocks around it. Returns the joined block.
std::map<int64_t, Block>::iterator join(std::map<int64_t, Block>::iterator at) {
  auto next = std::next(at);
  if (next != blocks.end() && next->second.is_free && next->second.segment == at->second.segment) {
    at->second.size += next->second.size;
    blocks.erase(next);
  }
  if (at == blocks.begin()) {
    return at;
  }
  auto before = std::prev(at);
  if (before->second.is_free && before->second.segment == at->second.segment) {
    before->second.size += at->second.size;
    blocks.erase(at);
    return before;
  }
  return at;
}

// Adds free memory in which a block of a size has room. Returns whether the driver had enough.
bool grow(int64_t size, bool is_small) {
  if (!is_expandable()) {
    int64_t segment_size = is_small ? PAGE : size < MEDIUM ? MEDIUM_SEGMENT : rounded_to(size, PAGE);
    if (!take(segment_size)) {
      return false;
    }
    blocks[next_segment] = {next_segment, segment_size, is_small, true};
    next_segment += GAP;
    return true;
  }
  if (!growing.count(is_small)) {
    growing[is_small] = next_segment;
    next_segment += GAP;
  }
  int64_t segment = growing[is_small];
  int64_t end = segment;
  int64_t free_at_end = 0;
  for (const auto& [address, block] : blocks) {
    if (block.segment == segment) {
      end = address + block.size;
      free_at_end = block.is_free ? block.size : 0;
    }
  }
  int64_t added = rounded_to(size - free_at_end, PAGE);
  if (!take(added)) {
    return false;
  }
  blocks[end] = {segment, added, is_small, true};
  join(blocks.find(end));
  return true;
}

// Returns the address of a new block, which is 0 if nothing is modelled.
int64_t allocate(int64_t asked) {
  if (!capacity) {
    return 0;
  }
  int64_t size = rounded_to(asked, GRAIN);
  bool is_small = size <= SMALL;
  auto at = find_free(size, is_small);
  if (at == blocks.end()) {
    if (!grow(size, is_small)) {
      retries++;
      release_free();
      TORCH_CHECK_WITH(
          OutOfMemoryError, grow(size, is_small), "CUDA out of memory. Tried to allocate ",
          asked >> 10, " KiB. GPU 0 has a total capacity of ", capacity >> 10, " KiB of which ",
          (capacity - reserved) >> 10, " KiB is free.");
    }
    at = find_free(size, is_small);
  }
  Block& block = at->second;
  block.is_free = false;
  int64_t rest = block.size - size;
  if (rest >= (is_small ? GRAIN : SMALL)) {
    block.size = size;
    blocks[at->first + size] = {block.segment, rest, is_small, true};
  }
  return at->first;
}

void release(int64_t address) {
  auto at = blocks.find(address);
  if (at != blocks.end()) {
    at->second.is_free = true;
    join(at);
  }
}

}  // namespace gpu_blocks
