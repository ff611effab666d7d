// The memory of the GPU with values: blocks of the host, counted as torch's allocator counts them.

#pragma once

#include <c10/core/Allocator.h>

#include <cstdlib>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "cuda_blocks.h"

namespace gpu_memory {

using gpu_blocks::GRAIN;

const int64_t SEGMENT = 2 << 20;  // bytes that it reserves at a time

// Blocks of one kind of memory.
struct Pool : c10::Allocator {
  c10::DeviceType type;
  std::mutex lock;
  std::unordered_map<const void*, size_t> blocks;
  std::unordered_map<const void*, int64_t> addresses;  // on the GPU, if its allocator is modelled
  int64_t asked = 0;  // bytes, like all of these
  int64_t asked_peak = 0;
  int64_t given = 0;  // the same, rounded
  int64_t given_peak = 0;
  int64_t reserved = 0;

  explicit Pool(c10::DeviceType kind) : type(kind) {}
  c10::DataPtr allocate(size_t size) override;
  c10::DeleterFnPtr raw_deleter() const override;
  void copy_data(void* to, const void* from, std::size_t size) const override {
    default_copy_data(to, from, size);
  }
};

Pool gpu_pool(c10::DeviceType::CUDA);
Pool pinned_pool(c10::DeviceType::CPU);

int64_t rounded(int64_t size) {
  return (size + GRAIN - 1) / GRAIN * GRAIN;
}

void give_back(void* block) {
  for (Pool* pool : {&gpu_pool, &pinned_pool}) {
    std::lock_guard<std::mutex> guard(pool->lock);
    auto found = pool->blocks.find(block);
    if (found != pool->blocks.end()) {
      pool->asked -= found->second;
      pool->given -= rounded(found->second);
      pool->blocks.erase(found);
      auto address = pool->addresses.find(block);
      if (address != pool->addresses.end()) {
        gpu_blocks::release(address->second);
        pool->addresses.erase(address);
      }
    }
  }
  std::free(block);
}

c10::DataPtr Pool::allocate(size_t size) {
  c10::Device device(type, type == c10::DeviceType::CUDA ? 0 : -1);
  if (size == 0) {
    return {nullptr, device};
  }
  std::lock_guard<std::mutex> guard(lock);
  int64_t address = type == c10::DeviceType::CUDA ? gpu_blocks::allocate(size) : 0;
  void* block = std::aligned_alloc(GRAIN, rounded(size));
  blocks[block] = size;
  if (address) {
    addresses[block] = address;
  }
  asked += size;
  given += rounded(size);
  asked_peak = std::max(asked_peak, asked);
  given_peak = std::max(given_peak, given);
  reserved = address ? gpu_blocks::reserved
                     : std::max(reserved, (given + SEGMENT - 1) / SEGMENT * SEGMENT);
  return {block, block, &give_back, device};
}

c10::DeleterFnPtr Pool::raw_deleter() const {
  return &give_back;
}

// Says whether an address lies in a pinned block.
bool is_pinned(const void* data) {
  std::lock_guard<std::mutex> guard(pinned_pool.lock);
  const char* address = static_cast<const char*>(data);
  for (auto& [block, size] : pinned_pool.blocks) {
    const char* begin = static_cast<const char*>(block);
    if (address >= begin && address < begin + size) {
      return true;
    }
  }
  return false;
}

// Returns bytes: asked for and at most, given out and at most, and reserved.
std::vector<int64_t> counts() {
  return {gpu_pool.asked, gpu_pool.asked_peak, gpu_pool.given, gpu_pool.given_peak,
          gpu_pool.reserved};
}

void reset_peak() {
  gpu_pool.asked_peak = gpu_pool.asked;
  gpu_pool.given_peak = gpu_pool.given;
}

bool is_known = (c10::SetAllocator(c10::DeviceType::CUDA, &gpu_pool), true);

}  // namespace gpu_memory
