// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cuda_runtime_api.h>
#include <mpi.h>
#include <nccl.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "program/dtypes_and_buffers.hpp"

/// Stand-ins for the CUDA runtime, cuBLASLt, NCCL and our kernels, so that the whole host side of
/// the CUDA executor runs where there is no GPU. What is started on a stream is done late, and in
/// any order that streams and events allow: a wait that is missing shows as wrong numbers.
namespace isoscale::standin {

/// A test chooses these settings; with all at their defaults the machine is healthy.
struct Settings {
  std::uint64_t seed = 1;  ///< of the order of work; each rank should have its own
  int gpus = 1;            ///< that this process sees
  int first_gpu = 0;       ///< number of the first of them: equal numbers, same GPU
  int driver = CUDART_VERSION, nccl = NCCL_VERSION_CODE;
  int capability = 9;                      ///< major number of the GPUs
  cudaError_t count_status = cudaSuccess;  ///< what cudaGetDeviceCount returns
  std::size_t gpu_memory = std::size_t{64} << 30U, pinned_memory = std::size_t{64} << 30U;
  int fastest_algorithm = 1;  ///< of the three that cuBLASLt offers
  /// ns that a multiplication takes by algorithm and ns done before; the clock shows these alone.
  std::function<std::int64_t(int, std::int64_t)> matmul_cost{};
  int broken_algorithm = -1;             ///< one that is offered, but refuses to run
  int endless_matmul = -1;               ///< after so many, the next one never ends
  int faulty_matmul = -1;                ///< or touches memory that it cannot reach
  MPI_Comm nccl_world = MPI_COMM_WORLD;  ///< the ranks that make a communicator by unique id
  std::string failing_communicator;      ///< by name: does nothing more, and tells failing_result
  ncclResult_t failing_result = ncclRemoteError;
  std::function<void()> when_asked_why{};  ///< called before that is told
  std::uint64_t failing_after = 0;         ///< kernels that it does first
  std::string endless_communicator;        ///< by name: its creation never ends
  std::uint64_t most_connected =
      ~std::uint64_t{0};          ///< bytes; GPU memory is short for larger calls
  std::string refused_algorithm;  ///< communicators made under an NCCL_ALGO with this text
  std::optional<program::DType> refused_type;  ///< then of this type alone; absent: of all
  bool makes_windows = true;     ///< GPUs map each other's: else windows look as if they did
  int mapped_ranks = 0;          ///< of a communicator, in turn; 0: all
  bool moves_pages = true;       ///< managed memory does on its own
  bool writes_values = true;     ///< streams do
  bool waits_for_values = true;  ///< streams do
  /// ns of the host for a launch and of the GPU for a kernel; above 0 its clock is a model's.
  std::int64_t launch_time = 0, kernel_time = 0;
  std::size_t launch_queue = SIZE_MAX;  ///< work under way that a launch waits to fall below
  bool loads_lazily = false;  ///< the first launch of each kernel waits for all work under way
};

/// Something that a stream does. One that is captured is done once per replay, each by a copy.
class Work {
 public:
  virtual ~Work() = default;
  /// Its place among others is taken: called when it is issued, or its graph launched.
  virtual void issued() {}
  /// Starts or continues; true once done. Throws Fault.
  virtual bool run() = 0;
  [[nodiscard]] virtual std::shared_ptr<Work> again() const = 0;
  /// Says whether launching and running it takes time in the model.
  [[nodiscard]] virtual bool takes_time() const { return true; }
};
using WorkPointer = std::shared_ptr<Work>;

/// Work that is done at once.
class Task final : public Work {
 public:
  explicit Task(std::function<void()> action) : action_(std::move(action)) {}
  bool run() override {
    action_();
    return true;
  }
  [[nodiscard]] WorkPointer again() const override { return std::make_shared<Task>(action_); }

 private:
  std::function<void()> action_;
};

/// Work touched memory that it cannot reach.
struct Fault {};

/// Work and what must be done before it.
struct Item {
  WorkPointer work;
  std::vector<std::shared_ptr<Item>> next;
  std::size_t missing = 0;  ///< items before it that are not done
  bool done = false;
  // In the model, ns: when it can begin as far as is known, how long it takes, when it ended.
  std::int64_t begin = 0, takes = 0, end = 0;
};
using ItemPointer = std::shared_ptr<Item>;

/// Work that was issued and is not done.
class Queue {
 public:
  ItemPointer add(WorkPointer work, std::span<const ItemPointer> before, std::int64_t takes = 0);
  /// Runs one that may run, drawn by `random`; false when there is none.
  bool advance(std::mt19937_64& random);
  [[nodiscard]] std::size_t size() const { return size_; }
  /// Drops all, undone.
  void clear();

 private:
  std::size_t pick(std::mt19937_64& random) const;

  std::vector<ItemPointer> ready_;
  std::size_t size_ = 0;
};

enum class Kind : std::uint8_t { device, managed, pinned, nccl };

/// All memory that CUDA gave out, between guard bytes.
class Allocations {
 public:
  Allocations();
  ~Allocations();  ///< frees what failed sessions have left behind on purpose
  Allocations(const Allocations&) = delete;
  Allocations& operator=(const Allocations&) = delete;

  [[nodiscard]] void* take(std::size_t bytes, Kind kind, std::size_t limit);
  /// False when it was never given out.
  bool give_back(void* pointer);
  /// Returns whether the bytes lie in one piece that was given out.
  [[nodiscard]] bool holds(const void* pointer, std::size_t bytes) const;
  /// Returns whether they lie in one piece of that kind.
  [[nodiscard]] bool holds(const void* pointer, std::size_t bytes, Kind kind) const;
  [[nodiscard]] std::size_t in_use(Kind kind) const;
  [[nodiscard]] std::size_t count() const { return pieces_.size(); }
  [[nodiscard]] int damaged() const { return damaged_; }

 private:
  struct Piece {
    std::size_t bytes = 0;
    Kind kind = Kind::device;
  };
  std::map<std::uintptr_t, Piece> pieces_;
  int damaged_ = 0;
};

/// Objects that were made and not given back.
struct Alive {
  int streams = 0, events = 0, graphs = 0, executables = 0, communicators = 0, descriptions = 0;
  int registrations = 0;  ///< windows and buffers that communicators know
  bool operator==(const Alive&) const = default;
};

/// All state of the stand-ins in one process.
struct Machine {
  Settings settings;
  std::mt19937_64 random{1};
  Queue queue;
  Allocations memory;
  Alive alive;
  int communicators_made = 0;
  cudaError_t last = cudaSuccess;            ///< what cudaGetLastError returns and clears
  cudaError_t sticky = cudaSuccess;          ///< a fault that the GPU does not recover from
  int captures = 0;                          ///< under way
  std::int64_t skew = 0;                     ///< ns that the GPU's clock is ahead of the host's
  std::int64_t worked = 0;                   ///< ns of multiplications
  std::int64_t host_time = 0, gpu_time = 0;  ///< in the model: of the host, of the work being run
  std::set<std::size_t> loaded;              ///< kernels
  std::vector<std::function<void()>> looks;  ///< called before each launch: what streams wait for
  int matmuls = 0, graph_launches = 0;
  int added_fast = 0;             ///< multiplications
  int scaled_by_zero = 0;         ///< multiplications
  std::set<std::string> choices;  ///< "NCCL_ALGO|NCCL_PROTO" of communicators that were used
  int all_reduces = 0;            ///< that were called
  int symmetric_calls = 0;        ///< calls whose memory lies in a window of their communicator
  int registered_calls = 0;       ///< or in a buffer that it knows
  int puts = 0;                   ///< messages that kernels of our own have stored
  int marks = 0;                  ///< values that streams have written
  std::vector<std::string>
      advice;  ///< what was done about managed memory, in the order it was done

  /// A healthy machine with these settings and nothing under way; memory stays.
  void reset(const Settings& chosen);
  /// Runs some of what may run; false when nothing can.
  bool advance();
};
[[nodiscard]] Machine& machine();

/// Puts work on a stream, or into the capture that the stream takes part in.
void submit(cudaStream_t stream, WorkPointer work);
/// A kernel or a copy; each lambda is one that may have to be loaded.
void submit(cudaStream_t stream, std::function<void()> action);

/// Throws Fault unless a GPU reaches these bytes.
void require_reachable(const void* pointer, std::size_t bytes);

/// Remembers the error for cudaGetLastError.
cudaError_t outcome(cudaError_t status);
/// `stream`, or the default one.
[[nodiscard]] CUstream_st& stream_of(cudaStream_t stream);
/// Returns the status of a call that may not be made in a capture, or after a fault.
[[nodiscard]] cudaError_t synchronous_call_status();
/// Runs until `item` is done.
cudaError_t wait_for(const ItemPointer& item);
/// Runs until nothing is left.
cudaError_t drain();

}  // namespace isoscale::standin

/// CUDA's opaque handles point to these types.
struct CUgraph_st {
  struct Node {
    isoscale::standin::WorkPointer work;
    std::vector<std::size_t> before;  ///< nodes
  };
  std::vector<Node> nodes;
  std::set<CUstream_st*> streams;  ///< that take part in the capture
  CUstream_st* origin = nullptr;
};

struct CUstream_st {
  std::vector<isoscale::standin::ItemPointer> before;  ///< of what comes next
  CUgraph_st* capture = nullptr;
  std::vector<std::size_t> nodes_before;  ///< in the capture
};

struct CUevent_st {
  bool is_timed = true;
  isoscale::standin::ItemPointer latest;  ///< record; null before the first
  std::shared_ptr<std::int64_t> reached;  ///< when it was done, GPU clock, ns
  CUgraph_st* capture = nullptr;          ///< recorded last within this one
  std::vector<std::size_t> nodes_before;
};

struct CUgraphExec_st {
  std::vector<CUgraph_st::Node> nodes;
  isoscale::standin::ItemPointer last;  ///< end of the launch before
};
