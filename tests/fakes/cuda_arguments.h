// Arguments of operators, for the GPU and for the host: both have one memory.

#pragma once

#include <ATen/EmptyTensor.h>
#include <ATen/core/List.h>
#include <ATen/core/ivalue.h>

#include <cstring>

#include "cuda_memory.h"

namespace gpu_arguments {

using c10::Device;
using c10::DeviceType;
using c10::IValue;
using gpu_memory::gpu_pool;

const c10::DispatchKeySet CPU_KEYS(c10::DispatchKey::CPU);
const c10::DispatchKeySet CUDA_KEYS(c10::DispatchKey::CUDA);

// Returns a tensor of the host with the memory of a tensor of the GPU.
at::Tensor on_host(const at::Tensor& tensor) {
  if (!tensor.defined() || !tensor.is_cuda()) {
    return tensor;
  }
  const c10::Storage& storage = tensor.storage();
  c10::Storage alias(
      c10::Storage::use_byte_size_t(), storage.nbytes(),
      c10::DataPtr(const_cast<void*>(storage.data()), Device(DeviceType::CPU)),
      c10::GetAllocator(DeviceType::CPU), /*resizable=*/true);
  auto host = at::detail::make_tensor<c10::TensorImpl>(
      std::move(alias), CPU_KEYS, tensor.dtype());
  host.unsafeGetTensorImpl()->set_sizes_and_strides(
      tensor.sizes(), tensor.strides(), tensor.storage_offset());
  return host;
}

// Returns a copy of a tensor in memory of the GPU.
at::Tensor on_gpu(const at::Tensor& host) {
  if (!host.defined() || host.is_cuda()) {
    return host;
  }
  at::Tensor tensor = at::detail::empty_strided_generic(
      host.sizes(), host.strides(), &gpu_pool, CUDA_KEYS,
      host.scalar_type());
  size_t size = tensor.storage().nbytes();
  if (size) {
    std::memcpy(tensor.mutable_data_ptr(), host.const_data_ptr(), size);
  }
  return tensor;
}

// Returns an argument in which each tensor is replaced by `change(tensor)`, and the GPU by the CPU.
template <typename F>
IValue changed(const IValue& value, F change) {
  if (value.isTensor()) {
    return change(value.toTensor());
  }
  if (value.isList()) {
    c10::List<IValue> values = value.toList().copy();
    for (size_t i = 0; i < values.size(); i++) {
      IValue item = values.get(i);
      if (item.isTensor()) {
        values.set(i, change(item.toTensor()));
      }
    }
    return values;
  }
  if (value.isDevice()) {
    return Device(DeviceType::CPU);
  }
  return value;
}

}  // namespace gpu_arguments
