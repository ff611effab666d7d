// The operators of the GPU with values (see cuda_values.py): each is that of the CPU, which sees the
// memory of the GPU as memory of the host.

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/_reshape_alias_native.h>
#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/resize_native.h>
#include <ATen/ops/set_native.h>
#include <ATen/ops/unfold_native.h>
#include <ATen/ops/view_native.h>
#include <ATen/record_function.h>
#include <torch/library.h>

#include <sys/prctl.h>

#include <cstring>
#include <set>

#include "cuda_arguments.h"
#include "cuda_driver.h"
#include "cuda_memory.h"
#include "cuda_time.h"

using c10::Device;
using c10::IValue;
using gpu_arguments::changed;
using gpu_arguments::CPU_KEYS;
using gpu_arguments::CUDA_KEYS;
using gpu_arguments::on_gpu;
using gpu_arguments::on_host;
using gpu_memory::gpu_pool;

namespace {

// A call of an operator that a graph repeats.
struct Kernel {
  c10::OperatorHandle op;
  std::vector<IValue> arguments;  // their aliases on the host
  std::vector<IValue> originals;  // keep the memory of the aliases
  std::vector<at::Tensor> results;
};

bool is_capturing = false;
std::vector<Kernel> captured;
std::vector<std::vector<Kernel>> graphs;
int64_t captured_ns = 0;  // of the GPU, for the captured kernels
std::vector<int64_t> graph_ns;
int sync_mode = 0;  // 0: silent, 1: warn, 2: raise

// Operators for which the host waits: they read a value, or their result has as many rows as needed.
const std::set<std::string> WAITS = {
    "aten::_local_scalar_dense", "aten::nonzero", "aten::masked_select", "aten::equal",
    "aten::_unique2", "aten::unique_dim", "aten::unique_consecutive", "aten::bincount"};
// Operators that take tensors of the host as well.
const std::set<std::string> MIXED = {
    "aten::copy_", "aten::_foreach_copy_", "aten::set_", "aten::index",
    "aten::index_put", "aten::index_put_", "aten::_index_put_impl_"};

// Notes that the host waits, as torch does in the mode of set_sync_debug_mode.
void note_wait() {
  TORCH_CHECK(!is_capturing, "CUDA error: operation not permitted when stream is capturing");
  if (sync_mode == 1) {
    TORCH_WARN("called a synchronizing CUDA operation");
  }
  TORCH_CHECK(sync_mode != 2, "called a synchronizing CUDA operation");
}

// Says whether an operator needs the positions of a mask; a number is filled in without them.
bool needs_positions(const std::string& name, const std::vector<IValue>& arguments) {
  if (name == "aten::index") {
    return true;
  }
  bool is_put = name == "aten::index_put_" || name == "aten::_index_put_impl_";
  return is_put && arguments[2].toTensor().numel() > 1;
}

// Says whether an operator only returns views, which takes no kernel.
bool is_view(const c10::FunctionSchema& schema) {
  for (const c10::Argument& result : schema.returns()) {
    if (!result.alias_info() || result.alias_info()->isWrite()) {
      return false;
    }
  }
  return !schema.returns().empty();
}

// Lets the time pass that an operator takes on the host and on the GPU.
void spend(
    int64_t began, const std::string& name, const std::vector<IValue>& arguments,
    const std::vector<IValue>& originals, int64_t bytes, bool crosses, bool must_wait) {
  if (crosses) {
    at::Tensor target = originals[0].toTensor();
    at::Tensor host = target.is_cuda() ? originals[1].toTensor() : target;
    gpu_time::copy_across(
        began, gpu_time::bytes_of(host), gpu_memory::is_pinned(host.const_data_ptr()), must_wait);
    return;
  }
  bool is_product = gpu_time::is_product(name);
  int64_t kernel_ns =
      std::max(gpu_time::KERNEL_NS, static_cast<int64_t>(bytes / gpu_time::MEMORY_SPEED));
  if (is_product) {
    kernel_ns = std::max(kernel_ns, gpu_time::product_ns(name, arguments));
  }
  if (is_capturing) {
    captured_ns += kernel_ns;
    return;
  }
  gpu_time::launch_in_region(began, kernel_ns, !is_product && !must_wait);
  if (must_wait) {
    gpu_time::synchronize();
  }
}

// Computes any operator: checks its tensors, calls the kernel of the CPU, and moves its results.
void compute(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  int64_t began = gpu_time::is_on ? gpu_time::now() : 0;
  const c10::FunctionSchema& schema = op.schema();
  const std::string& name = schema.name();
  size_t count = schema.arguments().size();
  std::vector<IValue> originals(stack->end() - count, stack->end());
  torch::jit::drop(*stack, count);

  bool has_host = false;
  bool has_mask = false;
  bool is_on_gpu = false;
  bool must_wait = false;
  int64_t bytes = 0;  // of the GPU that the operator reads or writes
  std::vector<IValue> arguments;
  for (size_t i = 0; i < count; i++) {
    const IValue& original = originals[i];
    if (original.isNone() && schema.arguments()[i].name() == "generator") {
      arguments.push_back(gpu_driver::generator);
      continue;
    }
    if (original.isDevice() && original.toDevice().is_cuda()) {
      is_on_gpu = true;
    }
    arguments.push_back(changed(original, [&](const at::Tensor& tensor) {
      if (tensor.defined()) {
        is_on_gpu = is_on_gpu || tensor.is_cuda();
        has_host = has_host || (tensor.is_cpu() && tensor.dim() > 0);
        has_mask = has_mask || tensor.scalar_type() == at::kBool;
        bytes += tensor.is_cuda() ? gpu_time::bytes_of(tensor) : 0;
      }
      return on_host(tensor);
    }));
  }
  TORCH_CHECK(
      !has_host || MIXED.count(name),
      "Expected all tensors to be on the same device, but found at least two devices, cuda:0 and "
      "cpu! (", name, ")");
  if (WAITS.count(name) || (has_mask && needs_positions(name, originals))) {
    note_wait();
    must_wait = true;
  }
  bool crosses = false;
  if (name == "aten::copy_") {
    crosses = originals[0].toTensor().is_cuda() != originals[1].toTensor().is_cuda();
    if (crosses && !originals[2].toBool()) {
      note_wait();
      must_wait = true;
    }
  }

  at::AutoDispatchBelowAutograd below;
  at::DisableRecordFunctionGuard unprofiled;
  c10::impl::ExcludeDispatchKeyGuard no_python(
      c10::DispatchKeySet({c10::DispatchKey::Python, c10::DispatchKey::PythonTLSSnapshot}));
  torch::jit::Stack local = arguments;
  op.redispatchBoxed(CPU_KEYS, &local);

  std::unordered_map<const void*, at::Tensor> alias_of;
  std::unordered_map<const void*, at::Tensor> owner_of;
  for (size_t i = 0; i < count; i++) {
    if (!originals[i].isTensor() || !originals[i].toTensor().defined()) {
      continue;
    }
    const at::Tensor& original = originals[i].toTensor();
    const at::Tensor& host = arguments[i].toTensor();
    if (original.is_cuda() && host.storage().data() != original.storage().data()) {  // resized
      original.resize_(host.sizes());
      std::memcpy(original.mutable_data_ptr(), host.const_data_ptr(), original.nbytes());
    }
    alias_of[host.unsafeGetTensorImpl()] = original;
    if (original.is_cuda() && original.storage().data()) {
      owner_of[original.storage().data()] = original;
    }
  }
  std::vector<at::Tensor> results;
  for (IValue& value : local) {
    IValue result = changed(value, [&](const at::Tensor& host) {
      if (!host.defined()) {
        return host;
      }
      auto same = alias_of.find(host.unsafeGetTensorImpl());
      if (same != alias_of.end()) {
        return same->second;
      }
      auto owner = owner_of.find(host.storage().data());
      if (owner != owner_of.end()) {  // a view
        return at::native::as_strided_tensorimpl(
            owner->second, host.sizes(), host.strides(), host.storage_offset());
      }
      at::Tensor result = is_on_gpu ? on_gpu(host) : host;
      results.push_back(result);
      bytes += gpu_time::bytes_of(result);
      return result;
    });
    stack->push_back(result);
  }
  if (is_capturing) {
    captured.push_back({op, arguments, originals, results});
  }
  if (gpu_time::is_on && is_on_gpu && !is_view(schema)) {
    spend(began, name, arguments, originals, bytes, crosses, must_wait);
  }
}

at::Tensor empty(
    c10::IntArrayRef size, std::optional<at::ScalarType> dtype, std::optional<at::Layout>,
    std::optional<Device>, std::optional<bool>, std::optional<at::MemoryFormat> format) {
  return at::detail::empty_generic(
      size, &gpu_pool, CUDA_KEYS, c10::dtype_or_default(dtype),
      format);
}

at::Tensor empty_strided(
    c10::IntArrayRef size, c10::IntArrayRef stride, std::optional<at::ScalarType> dtype,
    std::optional<at::Layout>, std::optional<Device>, std::optional<bool>) {
  return at::detail::empty_strided_generic(
      size, stride, &gpu_pool, CUDA_KEYS,
      c10::dtype_or_default(dtype));
}

// Returns the number of the attention without a fused kernel.
int64_t choose_plain_attention(
    const at::Tensor&, const at::Tensor&, const at::Tensor&, const std::optional<at::Tensor>&,
    double, bool, std::optional<double>, bool) {
  return 0;
}

void record_stream(at::Tensor&, c10::Stream) {}

void capture_begin() {
  captured.clear();
  captured_ns = 0;
  is_capturing = true;
}

int64_t capture_end() {
  is_capturing = false;
  graphs.push_back(std::move(captured));
  graph_ns.push_back(captured_ns);
  captured.clear();
  return graphs.size() - 1;
}

// Computes the operators of a graph again, into the memory of their first results.
void replay(int64_t number) {
  int64_t began = gpu_time::now();
  at::AutoDispatchBelowAutograd below;
  for (const Kernel& kernel : graphs.at(number)) {
    torch::jit::Stack local = kernel.arguments;
    kernel.op.redispatchBoxed(CPU_KEYS, &local);
    size_t next = 0;
    for (const IValue& value : local) {
      changed(value, [&](const at::Tensor& host) {
        bool is_new = true;
        for (const IValue& argument : kernel.arguments) {
          if (argument.isTensor() && argument.toTensor().is_same(host)) {
            is_new = false;
          }
        }
        if (is_new && host.defined() && next < kernel.results.size()) {
          const at::Tensor& result = kernel.results[next++];
          std::memcpy(result.mutable_data_ptr(), host.const_data_ptr(), result.storage().nbytes());
        }
        return host;
      });
    }
  }
  if (gpu_time::is_on) {
    gpu_time::launch(began, graph_ns.at(number));
  }
}

// Gives the GPU a time, and a limit of its memory. Operators on lists of tensors are one kernel each
// from now on; without a time, torch computes them tensor by tensor.
void start_time(int64_t capacity) {
  static std::vector<std::unique_ptr<torch::Library>> libraries;
  gpu_time::is_on = true;
  prctl(PR_SET_TIMERSLACK, 1);  // nanosecond: by default a sleep may end 50 µs late
  gpu_blocks::capacity = capacity;
  libraries.push_back(std::make_unique<torch::Library>(
      torch::Library::IMPL, "aten", c10::DispatchKey::CUDA, __FILE__, __LINE__));
  for (const c10::OperatorName& name : c10::Dispatcher::singleton().getAllOpNames()) {
    bool has_kernel =
        c10::Dispatcher::singleton().findOp(name)->hasKernelForDispatchKey(c10::DispatchKey::CUDA);
    if (name.name.rfind("aten::_foreach_", 0) == 0 && !has_kernel) {
      std::string full_name = c10::toString(name);
      libraries[0]->impl(
          full_name.c_str(), torch::CppFunction::makeFromBoxedFunction<&compute>());
    }
  }
}

}  // namespace

TORCH_LIBRARY_IMPL(_, CUDA, m) {
  m.fallback(torch::CppFunction::makeFromBoxedFunction<&compute>());
}

TORCH_LIBRARY_IMPL(aten, CUDA, m) {
  m.impl("empty.memory_format", &empty);
  m.impl("empty_strided", &empty_strided);
  m.impl("as_strided", &at::native::as_strided_tensorimpl);
  m.impl("view", &at::native::view);
  m.impl("unfold", &at::native::unfold);
  m.impl("_reshape_alias", &at::native::_reshape_alias);
  m.impl("resize_", &at::native::resize_);
  m.impl("set_.source_Storage", &at::native::set_);
  m.impl("set_.source_Storage_storage_offset", &at::native::set_storage_cpu_);
  m.impl("set_.source_Tensor", &at::native::set_tensor_);
  m.impl("_fused_sdp_choice", &choose_plain_attention);
  m.impl("record_stream", &record_stream);
  for (const char* name : {"copy_", "convolution", "convolution_backward"}) {
    m.impl(name, torch::CppFunction::makeFromBoxedFunction<&compute>());
  }
}

TORCH_LIBRARY(cuda_values, m) {
  m.def("memory() -> int[]", &gpu_memory::counts);
  m.def("reset_peak() -> ()", &gpu_memory::reset_peak);
  m.def("start_time(int capacity) -> ()", &start_time);
  m.def("now() -> int", &gpu_time::now);
  m.def("queue_end() -> int", &gpu_time::queue_end);
  m.def("wait_until(int end) -> ()", &gpu_time::wait_until);
  m.def("begin_region(int kind) -> ()", &gpu_time::begin_region);
  m.def("end_region() -> ()", &gpu_time::end_region);
  m.def("time_counts() -> int[]", []() {
    return std::vector<int64_t>{gpu_time::launches, gpu_time::busy_ns, gpu_time::waits};
  });
  m.def("allocator_retries() -> int", []() { return gpu_blocks::retries; });
  m.def("set_sync_mode(int mode) -> ()", [](int64_t mode) { sync_mode = mode; });
  m.def("capture_begin() -> ()", &capture_begin);
  m.def("capture_end() -> int", &capture_end);
  m.def("replay(int graph) -> ()", &replay);
  m.def("is_capturing() -> bool", []() { return is_capturing; });
  m.def("seed(int seed) -> ()", [](int64_t seed) { gpu_driver::generator.set_current_seed(seed); });
  m.def("random_state() -> Tensor", []() { return gpu_driver::generator.get_state(); });
  m.def("set_random_state(Tensor state) -> ()", [](const at::Tensor& state) {
    gpu_driver::generator.set_state(state);
  });
}
