// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "executor/cuda/gemm_timing.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <vector>

#include "base/error.hpp"
#include "executor/cuda/call.hpp"
#include "executor/cuda/check.hpp"
#include "executor/cuda/gemm_choice.hpp"
#include "executor/cuda/memory.hpp"
#include "program/fill.hpp"

namespace isoscale::executor::cuda {
namespace {

/// What cuBLAS itself takes on Hopper.
constexpr std::size_t most_workspace = std::size_t{32} << 20U;
constexpr int most_candidates = 16;
constexpr double batch_seconds = 1e-3;  // of calls between two events
constexpr int most_calls = 20;          // in a batch
constexpr int batches = 3;              // the median counts

template <class Value>
void set(cublasLtMatmulPreference_t preference, cublasLtMatmulPreferenceAttributes_t attribute,
         Value value) {
  check(cublasLtMatmulPreferenceSetAttribute(preference, attribute, &value, sizeof value));
}

std::vector<cublasLtMatmulHeuristicResult_t> candidates(cublasLtHandle_t library,
                                                        const GemmProblem& problem,
                                                        const GemmPlan& plan) {
  cublasLtMatmulPreference_t raw = nullptr;
  check(cublasLtMatmulPreferenceCreate(&raw));
  const MatmulPreference preference{raw};
  set(raw, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, most_workspace);
  // Partial sums of a split k are added in f32: not in the type of the result, where that is
  // narrow.
  set(raw, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
      static_cast<std::uint32_t>(CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE));
  set(raw, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, problem.first.alignment());
  set(raw, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, problem.second.alignment());
  set(raw, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, problem.c.alignment());
  set(raw, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, problem.d.alignment());
  std::vector<cublasLtMatmulHeuristicResult_t> found(most_candidates);
  int count = 0;
  const cublasStatus_t status = cublasLtMatmulAlgoGetHeuristic(
      library, plan.operation(), plan.first(), plan.second(), plan.c(), plan.d(), raw,
      most_candidates, found.data(), &count);
  if (status == CUBLAS_STATUS_NOT_SUPPORTED) count = 0;
  if (status != CUBLAS_STATUS_NOT_SUPPORTED) check(status);
  found.resize(static_cast<std::size_t>(count));
  std::erase_if(found, [](const auto& one) { return one.state != CUBLAS_STATUS_SUCCESS; });
  return found;
}

/// Random values within -1 ... 1: zeros would draw less power, and so run faster.
void randomize(const Operand& operand, std::uint64_t batch, std::uint64_t key,
               cudaStream_t stream) {
  constexpr int to_one = -7;  // 127 * 2^-7 < 1
  launch(FillCall{.type = operand.type,
                  .dst = operand.data,
                  .extents = {1, 1, operand.extent(batch)},
                  .local = {0, 0, 1},
                  .global = {0, 0, 1},
                  .grid = {.origin = program::fill_origin(key)},
                  .scale = program::power_of_two(to_one)},
         stream);
}

class Stopwatch {
 public:
  explicit Stopwatch(cudaStream_t stream) : stream_(stream) {}

  /// Seconds that `calls` of the GEMM take together.
  double time(const GemmCall& call, int calls) const {
    check(cudaEventRecord(begin_.get(), stream_));
    for (int i = 0; i < calls; ++i) launch(call, stream_);
    check(cudaEventRecord(end_.get(), stream_));
    check(cudaEventSynchronize(end_.get()));
    float milliseconds = 0;
    check(cudaEventElapsedTime(&milliseconds, begin_.get(), end_.get()));
    return static_cast<double>(milliseconds) * 1e-3;
  }

 private:
  cudaStream_t stream_;
  Event begin_ = make_event(Timing::on), end_ = make_event(Timing::on);
};

/// Seconds of one call; nothing when the algorithm cannot run after all.
std::optional<double> seconds_of(const GemmCall& call, const Stopwatch& stopwatch) {
  try {
    static_cast<void>(stopwatch.time(call, 1));  // loads the kernel
    const double once = stopwatch.time(call, 1);
    const int calls =
        std::clamp(static_cast<int>(batch_seconds / std::max(once, 1e-9)), 1, most_calls);
    std::array<double, batches> times{};
    for (double& time : times) time = stopwatch.time(call, calls) / calls;
    std::ranges::sort(times);
    return times[batches / 2];
  } catch (const CublasError&) {
    static_cast<void>(cudaGetLastError());  // else the next kernel would be blamed
    return std::nullopt;
  }
}

}  // namespace

GemmChoice fastest_algorithm(cublasLtHandle_t library, const GemmProblem& problem,
                             const std::string& shape) {
  const GemmPlan plan{problem};
  const Stream stream = make_stream(Priority::normal);
  randomize(problem.first, problem.batch, 1, stream.get());
  randomize(problem.second, problem.batch, 2, stream.get());
  randomize(problem.c, problem.batch, 3, stream.get());
  const DeviceMemory workspace = allocate_device(units::Bytes{most_workspace});
  const Stopwatch stopwatch{stream.get()};

  GemmChoice best{.shape = shape};
  for (const cublasLtMatmulHeuristicResult_t& candidate : candidates(library, problem, plan)) {
    const GemmCall call{.library = library,
                        .plan = &plan,
                        .algorithm = candidate.algo,
                        .problem = problem,
                        .workspace = workspace.get(),
                        .workspace_bytes = candidate.workspaceSize};
    const std::optional<double> seconds = seconds_of(call, stopwatch);
    if (!seconds) continue;
    ++best.candidates;
    if (best.candidates > 1 && *seconds >= best.time.value()) continue;
    best.algorithm = to_text(candidate.algo);
    best.workspace = units::Bytes{candidate.workspaceSize};
    best.time = units::Seconds{*seconds};
  }
  if (best.candidates == 0) {
    throw base::Error(fmt::format("cuBLASLt has no algorithm for the GEMM {}", shape));
  }
  return best;
}

}  // namespace isoscale::executor::cuda
