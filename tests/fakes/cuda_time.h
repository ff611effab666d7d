// The time of the GPU with values. It is off until `start` is called: then kernels take no time.
//
// The GPU has one queue. A launch takes the host LAUNCH_NS, and adds a kernel to the queue. The host
// really waits, so that all clocks show the time. Calls of operators compute their values on the
// host while they launch, so the GPU has to be slow enough for that.

#pragma once

#include <ATen/Context.h>

#include <algorithm>
#include <chrono>
#include <deque>
#include <mutex>
#include <string>
#include <thread>

namespace gpu_time {

const int64_t LAUNCH_NS = 200'000;  // of the host, for each kernel
const int64_t KERNEL_NS = 20'000;  // that a kernel takes at least
const size_t QUEUE = 1024;  // kernels; if the queue is full, the host waits
const int64_t SPIN_NS = 80'000;  // before the end of a wait; until then the host sleeps
// Floating point operations and bytes in a nanosecond.
const double IEEE_SPEED = 1;
const double TF32_SPEED = 4;
const double HALF_SPEED = 8;
const double MEMORY_SPEED = 1;
const double PINNED_SPEED = 0.5;
const double PAGEABLE_SPEED = 0.25;

enum Region { EAGER, COMPILED, CUDA_GRAPH };

bool is_on = false;
std::mutex lock;
std::deque<int64_t> ends;  // of the kernels in the queue
int64_t last_end = 0;  // of all kernels so far
int64_t launches = 0;  // by the host
int64_t busy_ns = 0;  // of the GPU, for all kernels
int64_t waits = 0;  // of the host for the GPU
thread_local Region region = EAGER;  // how the operators of this thread are launched
thread_local int64_t merged_ns = 0;  // of the kernel to which the next operator can be added

int64_t now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

// Waits on the host. It sleeps first: a host that only spins would slow down the other processes of
// the machine, and itself by that.
void wait_until(int64_t end) {
  int64_t left = end - now() - SPIN_NS;
  if (left > 0) {
    std::this_thread::sleep_for(std::chrono::nanoseconds(left));
  }
  while (now() < end) {
  }
}

// Returns when the GPU has finished all that is in its queue, which may be now.
int64_t queue_end() {
  std::lock_guard<std::mutex> guard(lock);
  return std::max(last_end, now());
}

void synchronize() {
  {
    std::lock_guard<std::mutex> guard(lock);
    waits++;
  }
  wait_until(queue_end());
}

// Adds a kernel to the queue.
void enqueue(int64_t kernel_ns) {
  int64_t free_place = 0;
  {
    std::lock_guard<std::mutex> guard(lock);
    while (!ends.empty() && ends.front() <= now()) {
      ends.pop_front();
    }
    if (ends.size() >= QUEUE) {
      free_place = ends.front();
    }
  }
  wait_until(free_place);
  std::lock_guard<std::mutex> guard(lock);
  busy_ns += kernel_ns;
  last_end = std::max(last_end, now()) + kernel_ns;
  ends.push_back(last_end);
}

// Launches a kernel for an operator whose call began at a time.
void launch(int64_t began, int64_t kernel_ns) {
  wait_until(began + LAUNCH_NS);
  {
    std::lock_guard<std::mutex> guard(lock);
    launches++;
  }
  enqueue(kernel_ns);
}

// Says whether an operator is always a kernel of its own, which a compiler merges with no other.
bool is_product(const std::string& name) {
  return name == "aten::mm" || name == "aten::addmm" || name == "aten::bmm" ||
         name == "aten::baddbmm" || name == "aten::convolution" ||
         name == "aten::convolution_backward";
}

// Launches an operator as its region does. A compiler merges operators in a row that are no
// products: they take as long as the longest of them. A CUDA graph launches nothing by itself.
void launch_in_region(int64_t began, int64_t kernel_ns, bool can_merge) {
  int64_t added_ns = kernel_ns;
  bool is_merged = region != EAGER && can_merge && merged_ns > 0;
  if (is_merged) {
    added_ns = std::max<int64_t>(0, kernel_ns - merged_ns);
  }
  merged_ns = can_merge ? std::max(merged_ns, kernel_ns) : 0;
  if (is_merged || region == CUDA_GRAPH) {
    enqueue(added_ns);
  } else {
    launch(began, added_ns);
  }
}

void begin_region(int64_t kind) {
  region = static_cast<Region>(kind);
  merged_ns = 0;
  if (is_on && region == CUDA_GRAPH) {
    launch(now(), 0);
  }
}

void end_region() {
  region = EAGER;
  merged_ns = 0;
}

// Returns the floating point operations in a nanosecond for products of a dtype.
double product_speed(at::ScalarType dtype, bool is_convolution) {
  if (dtype == at::kHalf || dtype == at::kBFloat16) {
    return HALF_SPEED;
  }
  if (dtype == at::kDouble) {
    return IEEE_SPEED / 2;
  }
  at::Context& context = at::globalContext();
  bool has_tf32 = is_convolution ? context.allowTF32CuDNN(at::Float32Op::CONV)
                                 : context.float32Precision(
                                       at::Float32Backend::CUDA, at::Float32Op::MATMUL) ==
                                       at::Float32Precision::TF32;
  return has_tf32 ? TF32_SPEED : IEEE_SPEED;
}

// Returns the time of a product on the GPU; `arguments` are those of its operator.
int64_t product_ns(const std::string& name, const std::vector<c10::IValue>& arguments) {
  bool is_convolution = name.find("convolution") != std::string::npos;
  bool has_bias_first = name == "aten::addmm" || name == "aten::baddbmm";
  at::Tensor first = arguments[has_bias_first ? 1 : 0].toTensor();
  at::Tensor second = arguments[has_bias_first ? 2 : 1].toTensor();
  double operations = 2.0 * first.numel() * second.size(-1);
  if (name == "aten::convolution") {
    double pixels = first.numel() / first.size(1);  // of all images; strides are not considered
    operations = 2.0 * pixels * second.numel();
  }
  if (name == "aten::convolution_backward") {  // of the images, and of the weights
    at::Tensor weight = arguments[2].toTensor();
    operations = 4.0 * first.numel() / first.size(1) * weight.numel();
  }
  return static_cast<int64_t>(operations / product_speed(first.scalar_type(), is_convolution));
}

int64_t bytes_of(const at::Tensor& tensor) {
  if (!tensor.defined() || !tensor.has_storage()) {
    return 0;
  }
  int64_t size = tensor.numel() * tensor.element_size();
  return std::min<int64_t>(size, tensor.storage().nbytes());  // an expanded tensor has fewer
}

// Copies between host and GPU. Only copies from or to pinned memory can leave the host free.
void copy_across(int64_t began, int64_t bytes, bool is_pinned, bool is_blocking) {
  if (!is_pinned) {
    synchronize();
  }
  double speed = is_pinned ? PINNED_SPEED : PAGEABLE_SPEED;
  launch(began, KERNEL_NS + static_cast<int64_t>(bytes / speed));
  if (!is_pinned || is_blocking) {
    synchronize();
  }
}

}  // namespace gpu_time
