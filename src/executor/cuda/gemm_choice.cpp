// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "executor/cuda/gemm.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <functional>
#include <limits>
#include <set>
#include <utility>

#include "base/text.hpp"
#include "executor/cuda/device.hpp"
#include "executor/cuda/kernels/kernels.hpp"
#include "executor/cuda/memory.hpp"
#include "results/records/point_fields.hpp"
#include "results/records/records_as_json_and_cbor.hpp"

namespace isoscale::executor::cuda {
namespace {

constexpr std::size_t words = sizeof(cublasLtMatmulAlgo_t::data) / sizeof(std::uint64_t);
constexpr std::size_t word_digits = 16;

/// The largest workspace of an algorithm, in bytes; cuBLAS itself uses 32 MiB on Hopper.
constexpr std::size_t most_workspace = std::size_t{32} << 20U;
constexpr int most_candidates = 16;
/// The largest number of GEMM shapes for which a rank times algorithms in one call of decide().
/// That many take about a minute.
constexpr std::size_t most_timed = 100;
// The following times are in seconds. They are long because an idle GPU runs at a low clock and
// needs a while to raise it, and a busy GPU lowers it again when it reaches its power limit.
constexpr double start_seconds = 5;  // once the first calls took so long, no more are tried
constexpr double warm_up_seconds = 100e-3;
constexpr double batch_seconds = 1e-3;   // a batch: the calls between two timing events
constexpr double turn_seconds = 7e-3;    // time for each algorithm in one round
constexpr double final_seconds = 50e-3;  // time for each of the fastest, after the rounds
constexpr double least_batch = 1e-5;  // lower bound for a batch's measured time, so that loops end
// GEMMs shorter than this stay far below the power limit, so they are timed for a shorter time,
// down to a fifth of the above.
constexpr double short_call = 20e-6, least_share = 0.2;
constexpr int rounds = 3;
constexpr std::size_t finalists = 3;
constexpr int most_calls = 1000;  // largest number of calls in a batch

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
  if (problem.d.type != program::DType::f64 && problem.d.type != program::DType::f32) {
    // The result is narrower than the compute type. If an algorithm splits k, it must add its
    // partial sums in the compute type.
    set(raw, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
        static_cast<std::uint32_t>(CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE));
  }
  set(raw, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, problem.first.alignment());
  set(raw, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, problem.second.alignment());
  set(raw, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, problem.c.alignment());
  set(raw, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, problem.d.alignment());
  std::vector<cublasLtMatmulHeuristicResult_t> found(most_candidates);
  int count = 0;
  const cublasStatus_t status = cublasLtMatmulAlgoGetHeuristic(
      library, plan.operation.get(), plan.first.get(), plan.second.get(), plan.c.get(),
      plan.d.get(), raw, most_candidates, found.data(), &count);
  if (status == CUBLAS_STATUS_NOT_SUPPORTED) return {};
  check(status);
  found.resize(static_cast<std::size_t>(count));
  std::erase_if(found, [](const auto& one) { return one.state != CUBLAS_STATUS_SUCCESS; });
  return found;
}

/// Fills an operand with random numbers whose mantissa bits are all random: with zeros or numbers
/// of few significant bits, the GPU would draw less power and run faster.
void randomize(const Operand& operand, std::uint64_t batch, std::uint64_t key,
               cudaStream_t stream) {
  const std::uint64_t count = operand.extent(batch);
  Arguments<program::Fill> call;
  call.op = {.dst = {.buffer = 0, .count = count},  // any buffer, since the address is set below
             .shard = {.extents = {1, 1, count}, .local = {0, 0, 1}, .global = {0, 0, 1}},
             .source = program::FillSource::normal,
             .key = key};
  call.at(&program::Fill::dst) = {operand.data, operand.type};
  call.type = operand.type;
  check(start(call, stream));
}

class Stopwatch {
 public:
  explicit Stopwatch(cudaStream_t stream) : stream_(stream) {}

  /// Returns the seconds that `calls` calls of the GEMM take together.
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

/// An algorithm that is timed.
struct Candidate {
  GemmCall call;
  double once = 0;    ///< seconds of one call, from the last measurement
  double time = 0;    ///< seconds of one call: the least of the medians of its turns
  double worked = 0;  ///< seconds of GPU time in the current race
};

/// Loads the algorithm's kernel by calling it; returns false if it cannot run after all.
bool starts(Candidate& candidate, const Stopwatch& stopwatch) {
  try {
    static_cast<void>(stopwatch.time(candidate.call, 1));
    candidate.once = stopwatch.time(candidate.call, 1);
    constexpr int calls = 10;  // of which all but the first are launched while others run
    if (candidate.once < short_call) candidate.once = stopwatch.time(candidate.call, calls) / calls;
    return true;
  } catch (const CublasError&) {
    static_cast<void>(cudaGetLastError());  // clears the error, or the next launch reports it
    return false;
  }
}

/// Runs batches of calls until they have taken `seconds`; returns the time of one call, as the
/// median over the batches.
double play(Candidate& candidate, double seconds, const Stopwatch& stopwatch) {
  const int calls =
      std::clamp(static_cast<int>(batch_seconds / std::max(candidate.once, 1e-9)), 1, most_calls);
  std::vector<double> times;
  const double end = candidate.worked + seconds;
  while (candidate.worked < end) {
    const double batch = stopwatch.time(candidate.call, calls);
    candidate.worked += std::max(batch, least_batch);
    times.push_back(batch / calls);
  }
  const auto middle = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2);
  std::ranges::nth_element(times, middle);
  candidate.once = *middle;
  return *middle;
}

/// Runs the candidates in turn, each for turn_seconds * `share`, at least `least_rounds` times and
/// until each has worked for `seconds`; sorts them with the fastest first.
void race(std::span<Candidate> field, int least_rounds, double seconds, double share,
          const Stopwatch& stopwatch) {
  for (Candidate& one : field) {
    one.time = std::numeric_limits<double>::infinity();
    one.worked = 0;
  }
  const auto needs_more = [&](const Candidate& one) { return one.worked < seconds; };
  for (int round = 0; round < least_rounds || std::ranges::any_of(field, needs_more); ++round) {
    for (Candidate& one : field) {
      one.time = std::min(one.time, play(one, turn_seconds * share, stopwatch));
    }
  }
  std::ranges::stable_sort(field, {}, &Candidate::time);
}

/// Sets the scales of fp8 operands, which have not been written yet, to 1: scales of 0 would give
/// zeros, which draw less power.
void set_scales(const GemmProblem& problem, cudaStream_t stream) {
  const float one = 1;
  for (float* const scale : {problem.descale_first, problem.descale_second}) {
    if (scale == nullptr) continue;
    check(cudaMemcpyAsync(scale, &one, sizeof one, cudaMemcpyDefault, stream));
  }
}

/// Returns the fastest of the first `most` algorithms that run, of those that the library's
/// heuristic offers for a problem with at most most_workspace bytes of workspace. They are timed on
/// the problem's own operands, which are overwritten with random values, with scales of 1. After a
/// warm-up that lets the GPU's clock settle, all are timed in turn, in rounds; the best of them are
/// then timed again for longer. Throws base::Error if no algorithm runs.
GemmChoice fastest_algorithm(cublasLtHandle_t library, const GemmProblem& problem,
                             const std::string& shape, std::size_t most) {
  const GemmPlan plan{problem};
  const Stream stream = make_stream(Priority::normal);
  randomize(problem.first, problem.batch, 1, stream.get());
  randomize(problem.second, problem.batch, 2, stream.get());
  randomize(problem.c, problem.batch, 3, stream.get());
  set_scales(problem, stream.get());
  const DeviceMemory workspace = allocate_device(units::Bytes{most_workspace});
  const Stopwatch stopwatch{stream.get()};

  std::vector<Candidate> field;
  double started = 0;
  for (const cublasLtMatmulHeuristicResult_t& offered : candidates(library, problem, plan)) {
    if (field.size() == most || started > start_seconds) break;
    Candidate candidate{.call = {.library = library,
                                 .plan = &plan,
                                 .algorithm = offered.algo,
                                 .problem = problem,
                                 .workspace = workspace.get(),
                                 .workspace_bytes = offered.workspaceSize}};
    if (!starts(candidate, stopwatch)) continue;
    started += 2 * candidate.once;
    field.push_back(candidate);
  }
  if (field.empty()) {
    throw base::Error(fmt::format("cuBLASLt has no algorithm for the GEMM {}", shape));
  }
  if (field.size() == 1) {
    field.front().time = field.front().once;
  } else {
    const double share = std::clamp(field.front().once / short_call, least_share, 1.0);
    static_cast<void>(play(field.front(), warm_up_seconds * share, stopwatch));
    race(field, rounds, 0, share, stopwatch);
    race(std::span{field}.first(std::min(finalists, field.size())), 1, final_seconds * share, share,
         stopwatch);
  }
  const Candidate& best = field.front();
  return {.shape = shape,
          .algorithm = to_text(best.call.algorithm),
          .workspace = static_cast<std::int64_t>(best.call.workspace_bytes),
          .time = best.time,
          .candidates = static_cast<int>(field.size())};
}

/// Splits a text into lines; a line break at its end begins no further line.
std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines = base::split(text, '\n');
  if (lines.back().empty()) lines.pop_back();
  return lines;
}

CublasLt make_library() {
  cublasLtHandle_t handle = nullptr;
  check(cublasLtCreate(&handle));
  return CublasLt{handle};
}

/// Stands for a key in messages between ranks, which run the same program.
std::string digest_of(const std::string& key) {
  return fmt::format("{:016x}", std::hash<std::string>{}(key));
}

/// Collective over `point`. Each rank passes the digests of all its problems' keys, and those of
/// them whose algorithm it knows. Returns the rank that decides for each digest of any rank: the
/// lowest one that knows an algorithm, or else the lowest one that has the problem.
std::map<std::string, int, std::less<>> deciding_ranks(const std::set<std::string>& mine,
                                                       const std::set<std::string>& known,
                                                       const comm::Communicator& point) {
  const auto gathered = [&](const std::set<std::string>& digests) {
    return point.gather(fmt::format("{}", fmt::join(digests, "\n")));
  };
  std::string table;
  std::set<std::string_view> seen;
  // Ranks that know an algorithm come first.
  for (const std::vector<std::string>& all : {gathered(known), gathered(mine)}) {
    for (std::size_t rank = 0; rank < all.size(); ++rank) {
      for (const std::string_view digest : lines_of(all[rank])) {
        if (seen.insert(digest).second) table += fmt::format("{}\t{}\n", digest, rank);
      }
    }
  }
  std::map<std::string, int, std::less<>> result;
  table = point.broadcast(table);
  for (const std::string_view line : lines_of(table)) {
    const std::size_t tab = line.find('\t');
    result[std::string{line.substr(0, tab)}] = std::stoi(std::string{line.substr(tab + 1)});
  }
  return result;
}

}  // namespace

std::string to_text(const cublasLtMatmulAlgo_t& algorithm) {
  return fmt::format("{:016x}", fmt::join(algorithm.data, ""));
}

cublasLtMatmulAlgo_t algorithm_of(std::string_view text) {
  cublasLtMatmulAlgo_t algorithm{};
  bool is_valid = text.size() == words * word_digits;
  for (std::size_t i = 0; is_valid && i < words; ++i) {
    const char* const begin = text.data() + i * word_digits;
    const auto [end, error] = std::from_chars(begin, begin + word_digits, algorithm.data[i], 16);
    is_valid = error == std::errc{} && end == begin + word_digits;
  }
  if (!is_valid) {
    throw base::Error(fmt::format("'{}' is not an algorithm of cuBLASLt ({} hexadecimal digits)",
                                  text, words * word_digits));
  }
  return algorithm;
}

std::string arithmetic_of(const cublasLtMatmulAlgo_t& algorithm) {
  struct Flag {
    std::uint64_t bit;
    std::string_view name;
  };
  constexpr std::uint64_t tensor_cores = CUBLASLT_NUMERICAL_IMPL_FLAGS_TENSOR_OP_MASK;
  constexpr std::array units{Flag{CUBLASLT_NUMERICAL_IMPL_FLAGS_FMA, "FMA"},
                             Flag{tensor_cores, "tensor cores"}};
  constexpr std::array inputs{Flag{CUBLASLT_NUMERICAL_IMPL_FLAGS_INPUT_16F, "f16"},
                              Flag{CUBLASLT_NUMERICAL_IMPL_FLAGS_INPUT_16BF, "bf16"},
                              Flag{CUBLASLT_NUMERICAL_IMPL_FLAGS_INPUT_TF32, "tf32"},
                              Flag{CUBLASLT_NUMERICAL_IMPL_FLAGS_INPUT_32F, "f32"},
                              Flag{CUBLASLT_NUMERICAL_IMPL_FLAGS_INPUT_64F, "f64"},
                              Flag{CUBLASLT_NUMERICAL_IMPL_FLAGS_INPUT_8I, "i8"},
                              Flag{CUBLASLT_NUMERICAL_IMPL_FLAGS_INPUT_8F_E4M3, "e4m3"},
                              Flag{CUBLASLT_NUMERICAL_IMPL_FLAGS_INPUT_8F_E5M2, "e5m2"}};
  constexpr std::array sums{Flag{CUBLASLT_NUMERICAL_IMPL_FLAGS_ACCUMULATOR_16F, "f16"},
                            Flag{CUBLASLT_NUMERICAL_IMPL_FLAGS_ACCUMULATOR_32F, "f32"},
                            Flag{CUBLASLT_NUMERICAL_IMPL_FLAGS_ACCUMULATOR_64F, "f64"},
                            Flag{CUBLASLT_NUMERICAL_IMPL_FLAGS_ACCUMULATOR_32I, "i32"}};
  std::uint64_t flags = 0;
  std::size_t written = 0;
  const cublasStatus_t status = cublasLtMatmulAlgoCapGetAttribute(
      &algorithm, CUBLASLT_ALGO_CAP_NUMERICAL_IMPL_FLAGS, &flags, sizeof flags, &written);
  if (status != CUBLAS_STATUS_SUCCESS || written != sizeof flags) return "";
  const auto names = [flags](std::span<const Flag> all) {
    std::string text;
    for (const Flag& flag : all) {
      if ((flags & flag.bit) != 0) text += fmt::format("{}{}", text.empty() ? "" : "+", flag.name);
    }
    return text.empty() ? std::string{"unknown"} : text;
  };
  return fmt::format("{}, {} inputs, {} sums", names(units), names(inputs), names(sums));
}

GemmChoices::GemmChoices(std::string library, std::span<const GemmChoice> known)
    : handle_(make_library()), library_(std::move(library)), was_given_any_(!known.empty()) {
  for (const GemmChoice& choice : known) {
    static_cast<void>(algorithm_of(choice.algorithm));  // throws now if the text is invalid
    GemmChoice given = choice;
    given.candidates = 0;
    given.time.reset();
    choices_.emplace(choice.shape, given);
  }
}

int GemmChoices::decide(std::span<const GemmProblem> problems, const comm::Communicator& point) {
  std::map<std::string, const GemmProblem*> all;
  std::set<std::string> digests, known;
  for (const GemmProblem& problem : problems) {
    const auto [place, is_new] = all.emplace(problem.key(library_), &problem);
    if (!is_new) continue;
    digests.insert(digest_of(place->first));
    if (choices_.contains(place->first)) known.insert(digest_of(place->first));
  }
  const auto decides = deciding_ranks(digests, known, point);
  std::vector<GemmChoice> mine;
  std::vector<std::pair<std::string, const GemmProblem*>> open;
  for (const auto& [shape, problem] : all) {
    if (decides.at(digest_of(shape)) != point.rank()) continue;
    const auto at = choices_.find(shape);
    if (at == choices_.end()) {
      open.emplace_back(shape, problem);
    } else {
      mine.push_back(at->second);
    }
  }
  // The GEMMs with the most FLOP come first. Those beyond most_timed get the heuristic's first
  // algorithm: if routing of experts makes thousands of shapes, timing all would take an hour.
  std::ranges::stable_sort(open, std::greater{}, [](const auto& one) {
    const GemmProblem& at = *one.second;
    return static_cast<double>(at.batch * at.m) * static_cast<double>(at.n * at.k);
  });
  agreed(point, [&] {
    for (std::size_t i = 0; i < open.size(); ++i) {
      const std::size_t most = i < most_timed ? most_candidates : 1;
      mine.push_back(fastest_algorithm(handle(), *open[i].second, open[i].first, most));
      point.count_other();  // progress, while the other ranks wait
    }
  });
  for (const std::string& packed : point.all_gather(results::packed(mine))) {
    const auto bytes = std::as_bytes(std::span{packed});
    for (GemmChoice& choice : results::unpacked<std::vector<GemmChoice>>(bytes)) {
      std::string shape = choice.shape;
      choices_.insert_or_assign(std::move(shape), std::move(choice));
    }
  }
  const double timed = point.all_sum(static_cast<double>(open.size()));
  return was_given_any_ ? static_cast<int>(timed) : 0;
}

const GemmChoice& GemmChoices::of(const GemmProblem& problem) const {
  const auto found = choices_.find(problem.key(library_));
  if (found == choices_.end()) {
    throw base::Error(fmt::format("no algorithm was chosen for {}", problem.key(library_)));
  }
  return found->second;
}

}  // namespace isoscale::executor::cuda
