// What torch asks of a driver: one GPU. Unless it has a time, each call has finished when it returns.

#pragma once

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/detail/CUDAHooksInterface.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <torch/csrc/profiler/stubs/base.h>

#include "cuda_memory.h"
#include "cuda_time.h"

namespace gpu_driver {

using c10::Device;
using c10::DeviceType;
using c10::Stream;

const Device GPU(DeviceType::CUDA, 0);
at::Generator generator = at::detail::createCPUGenerator();  // of the numbers drawn on the GPU

// Streams and events. An event is the time of the host at which the GPU reaches it.
struct Guard : c10::impl::NoOpDeviceGuardImpl<DeviceType::CUDA> {
  Device getDevice() const override { return GPU; }
  Device exchangeDevice(Device) const override { return GPU; }
  Stream getStream(Device) const noexcept override { return Stream(Stream::DEFAULT, GPU); }
  Stream getDefaultStream(Device) const override { return Stream(Stream::DEFAULT, GPU); }
  Stream getNewStream(Device, int) const override { return Stream(Stream::DEFAULT, GPU); }
  Stream getStreamFromGlobalPool(Device, bool) const override {
    return Stream(Stream::DEFAULT, GPU);
  }
  Stream exchangeStream(Stream) const noexcept override { return Stream(Stream::DEFAULT, GPU); }
  void record(void** event, const Stream&, c10::DeviceIndex, c10::EventFlag) const override {
    if (*event == nullptr) {
      *event = new int64_t();
    }
    *static_cast<int64_t*>(*event) = gpu_time::queue_end();
  }
  void destroyEvent(void* event, c10::DeviceIndex) const noexcept override {
    delete static_cast<int64_t*>(event);
  }
  double elapsedTime(void* begin, void* end, c10::DeviceIndex) const override {
    return (*static_cast<int64_t*>(end) - *static_cast<int64_t*>(begin)) / 1e6;
  }
  void block(void*, const Stream&) const override {}
  bool queryEvent(void* event) const override {
    return *static_cast<int64_t*>(event) <= gpu_time::now();
  }
  void synchronizeEvent(void* event) const override {
    gpu_time::wait_until(*static_cast<int64_t*>(event));
  }
  void synchronizeDevice(c10::DeviceIndex) const override { gpu_time::synchronize(); }
  void synchronizeStream(const Stream&) const override { gpu_time::synchronize(); }
  bool queryStream(const Stream&) const override {
    return gpu_time::queue_end() <= gpu_time::now();
  }
};

C10_REGISTER_GUARD_IMPL(CUDA, Guard)

// Ranges and events of the profiler, which are for tools that watch a GPU.
struct Ranges : torch::profiler::impl::ProfilerStubs {
  using Event = torch::profiler::impl::ProfilerVoidEventStub;
  void record(c10::DeviceIndex*, Event*, int64_t*) const override {}
  float elapsed(const Event*, const Event*) const override { return 0; }
  void mark(const char*) const override {}
  void rangePush(const char*) const override {}
  void rangePop() const override {}
  bool enabled() const override { return true; }
  void onEachDevice(std::function<void(int)> call) const override { call(0); }
  void synchronize() const override {}
};

Ranges ranges;
bool has_ranges = (torch::profiler::impl::registerCUDAMethods(&ranges), true);

}  // namespace gpu_driver

namespace at {

struct CUDAHooks : CUDAHooksInterface {
  explicit CUDAHooks(CUDAHooksArgs) {}
  void init() const override {}
  bool hasCUDA() const override { return true; }
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return true; }
  bool hasPrimaryContext(DeviceIndex) const override { return true; }
  DeviceIndex deviceCount() const override { return 1; }
  DeviceIndex current_device() const override { return 0; }
  DeviceIndex getCurrentDevice() const override { return 0; }
  void setCurrentDevice(DeviceIndex) const override {}
  DeviceIndex exchangeDevice(DeviceIndex) const override { return 0; }
  DeviceIndex maybeExchangeDevice(DeviceIndex) const override { return 0; }
  int getNumGPUs() const override { return 1; }
  void deviceSynchronize(DeviceIndex) const override { gpu_time::synchronize(); }
  Device getDeviceFromPtr(void*) const override { return gpu_driver::GPU; }
  Allocator* getCUDADeviceAllocator() const override { return &gpu_memory::gpu_pool; }
  Allocator* getPinnedMemoryAllocator() const override { return &gpu_memory::pinned_pool; }
  bool isPinnedPtr(const void* data) const override { return gpu_memory::is_pinned(data); }
  const Generator& getDefaultGenerator(DeviceIndex) const override {
    return gpu_driver::generator;
  }
  Generator getNewGenerator(DeviceIndex) const override { return detail::createCPUGenerator(); }
};

REGISTER_CUDA_HOOKS(CUDAHooks)

}  // namespace at
