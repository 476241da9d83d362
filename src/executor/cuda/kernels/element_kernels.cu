// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "executor/cuda/kernels/vector_access.cuh"
#include "program/fill_and_checksum.hpp"

namespace isoscale::executor::cuda {
namespace {

/// Calls use(Type<Word>{}) with the unsigned integer type of `bytes` bytes: 1, 2, 4 or 8.
template <class Use>
void with_word(std::size_t bytes, const Use& use) {
  switch (bytes) {
    case sizeof(std::uint64_t):
      return use(Type<std::uint64_t>{});
    case sizeof(std::uint32_t):
      return use(Type<std::uint32_t>{});
    case sizeof(std::uint16_t):
      return use(Type<std::uint16_t>{});
    default:
      return use(Type<std::uint8_t>{});
  }
}

template <class Unit>
__global__ void copy(Extents extents, In<Unit> src, Out<Unit> dst) {
  for_each_element(
      extents, [](const Unit& from, Unit& to) { to = from; }, src, dst);
}

template <class Unit>
void start_in(const StridedCopy& pieces, cudaStream_t stream) {
  constexpr std::size_t size = sizeof(Unit);
  start_elements(copy<Unit>, {pieces.rows, pieces.row_bytes / size, pieces.batch}, stream,
                 In<Unit>{reinterpret_cast<const Unit*>(pieces.src), pieces.src_row / size,
                          pieces.src_batch / size},
                 Out<Unit>{reinterpret_cast<Unit*>(pieces.dst), pieces.dst_row / size,
                           pieces.dst_batch / size});
}

/// The shard of a tensor that a fill writes: its extents, the strides of its elements in this
/// rank's memory and in the whole tensor, and the index in the whole tensor of its first element.
/// The kernel takes it by value.
struct Shape {
  std::uint64_t extents[3], local[3], global[3];
  std::uint64_t first;
};

template <class T>
struct Integers {
  program::FillGrid grid;
  double scale;
  __device__ T operator()(std::uint64_t index) const {
    return rounded<T>(program::fill_value<Compute<T>>(program::fill_integer(grid, index), scale));
  }
};

template <class T>
struct Normal {
  program::FillGrid grid;
  double scale;
  __device__ T operator()(std::uint64_t index) const {
    return rounded<T>(program::fill_normal<Compute<T>>(grid, index, scale));
  }
};

template <class T>
struct Same {
  T value;
  __device__ T operator()(std::uint64_t /*index*/) const { return value; }
};

template <class T, class ValueOf>
__global__ void fill(T* dst, Shape shape, ValueOf value_of) {
  const std::uint64_t plane = shape.extents[1] * shape.extents[2];
  const std::uint64_t count = shape.extents[0] * plane;
  for (std::uint64_t e = first_element(); e < count; e += element_step()) {
    const std::uint64_t i = e / plane, j = e % plane / shape.extents[2], k = e % shape.extents[2];
    const std::uint64_t index =
        shape.first + i * shape.global[0] + j * shape.global[1] + k * shape.global[2];
    dst[i * shape.local[0] + j * shape.local[1] + k * shape.local[2]] = value_of(index);
  }
}

template <class T>
__global__ void add(Extents extents, In<T> a, In<T> b, Out<T> dst, Compute<T> scale) {
  for_each_element(
      extents, [=](const T& x, const T& y, T& sum) { sum = rounded<T>(load(x) + scale * load(y)); },
      a, b, dst);
}

using Word64 = unsigned long long;  // the 64-bit type of atomicAdd

/// Adds the checksum of src to sum[0], and the number of elements that are not finite to sum[1].
/// The terms are integers, so the result does not depend on the order in which warps add. `Word` is
/// an unsigned integer of the size of an element.
template <class Word>
__global__ void checksum(Extents extents, In<Word> src, Places places, std::uint64_t mask,
                         Word64* sum) {
  Word64 mine = 0, not_finite = 0;
  for_each_element(
      extents,
      [&](const Word& bits, std::uint64_t place) {
        mine += program::checksum_term(bits, place);
        not_finite += program::is_finite(bits, mask) ? 0 : 1;
      },
      src, places);
  mine = over_warp(mine, Sum{});
  not_finite = over_warp(not_finite, Sum{});
  if (lane() != 0) return;
  atomicAdd(sum, mine);
  if (not_finite != 0) atomicAdd(sum + 1, not_finite);
}

template <class Word>
__global__ void flip_bits(Word* src, std::uint64_t rows, std::uint64_t columns, std::uint64_t batch,
                          std::uint64_t row_stride, std::uint64_t batch_stride,
                          const Word64* flip) {
  const std::uint64_t element = flip[0];
  if (flip[1] == 0 || element >= batch * rows * columns) return;
  const std::uint64_t row = element / columns;
  src[row / rows * batch_stride + row % rows * row_stride + element % columns] ^=
      static_cast<Word>(flip[1]);
}

template <class Word>
void start_as(const Arguments<program::Checksum>& call, cudaStream_t stream) {
  using Op = program::Checksum;
  const std::uint64_t rows = call.op.rows, columns = call.op.columns, batch = call.op.batch;
  const MatrixAt src = call[&Op::src];
  if (const OperandAt flip = call[&Op::flip]; flip.data != nullptr) {
    start_kernel(flip_bits<Word>, 1, 1, stream, reinterpret_cast<Word*>(src.data), rows, columns,
                 batch, src.row_stride, src.batch_stride,
                 reinterpret_cast<const Word64*>(flip.data));
  }
  start_elements(checksum<Word>, {rows, columns, batch}, stream, in<Word>(src),
                 Places{rows, columns}, program::exponent_mask(src.type),
                 reinterpret_cast<Word64*>(call[&Op::sum].data));
}

using program::Update;

/// Updates w, which is the master copy if there is one, else the weight itself. If w is the master
/// copy, the rounded weight is written too.
template <class State, class Gradient, class Weight>
__global__ void sgd(Extents extents, In<Gradient> gradient, InOut<State> w,
                    OptionalOut<Weight> weight, State scale, State rate) {
  for_each_element(
      extents,
      [=](const Gradient& element, State& to, Weight& narrow) {
        const State g = static_cast<State>(load(element)) * scale;
        to = to - rate * g;
        narrow = rounded<Weight>(to);
      },
      gradient, w, weight);
}

template <class State>
__global__ void advance(State* powers, double beta1, double beta2) {
  powers[0] = static_cast<State>(static_cast<double>(powers[0]) * beta1);
  powers[1] = static_cast<State>(static_cast<double>(powers[1]) * beta2);
}

template <class State>
struct AdamFactors {
  State scale, rate, beta1, beta2, fresh1, fresh2, epsilon;
};

/// Three blocks on a multiprocessor have enough loads in flight, hence the limit on registers; in
/// f64, two have.
template <class State, class Gradient, class Weight>
__global__ void __launch_bounds__(block_threads, sizeof(State) == sizeof(float) ? 3 : 2)
    adam(Extents extents, In<Gradient> gradient, InOut<State> w, InOut<State> moment1,
         InOut<State> moment2, OptionalOut<Weight> weight, const State* powers,
         AdamFactors<State> f) {
  const auto correction1 = static_cast<State>(1 - static_cast<double>(powers[0]));
  const auto correction2 = static_cast<State>(1 - static_cast<double>(powers[1]));
  for_each_element(
      extents,
      [=](const Gradient& element, State& to, State& m, State& v, Weight& narrow) {
        const State g = static_cast<State>(load(element)) * f.scale;
        m = f.beta1 * m + f.fresh1 * g;
        v = f.beta2 * v + f.fresh2 * g * g;
        to = to - f.rate * ((m / correction1) / (sqrt(v / correction2) + f.epsilon));
        narrow = rounded<Weight>(to);
      },
      gradient, w, moment1, moment2, weight);
}

template <class State, class Gradient, class Weight>
void start_as(const Arguments<Update>& call, cudaStream_t stream) {
  const auto state = [](const OperandAt& at) {
    return InOut<State>{reinterpret_cast<State*>(at.data)};
  };
  const bool has_master = call[&Update::master].data != nullptr;
  const auto w = state(call[has_master ? &Update::master : &Update::weight]);
  auto* const narrow = reinterpret_cast<Weight*>(call[&Update::weight].data);
  const OptionalOut<Weight> weight{has_master ? narrow : nullptr};
  const In<Gradient> gradient{reinterpret_cast<const Gradient*>(call[&Update::gradient].data)};
  const auto number = [](double value) { return static_cast<State>(value); };
  const Update& op = call.op;
  const Extents extents{1, op.weight.count};
  if (op.optimizer == program::Optimizer::sgd) {
    start_elements(sgd<State, Gradient, Weight>, extents, stream, gradient, w, weight,
                   number(op.gradient_scale), number(op.rate));
    return;
  }
  auto* const powers = reinterpret_cast<State*>(call[&Update::powers].data);
  if (call.powers == Powers::advance) {
    start_kernel(advance<State>, 1, 1, stream, powers, op.beta1, op.beta2);
  }
  const AdamFactors<State> factors{
      number(op.gradient_scale), number(op.rate),      number(op.beta1),  number(op.beta2),
      number(1 - op.beta1),      number(1 - op.beta2), number(op.epsilon)};
  start_elements(adam<State, Gradient, Weight>, extents, stream, gradient, w,
                 state(call[&Update::moment1]), state(call[&Update::moment2]), weight, powers,
                 factors);
}

}  // namespace

cudaError_t start(const StridedCopy& pieces, cudaStream_t stream) {
  if (pieces.row_bytes * pieces.rows * pieces.batch == 0) return cudaSuccess;
  // The kernel copies in the largest unit that divides all addresses, lengths and strides.
  const std::uint64_t bits = reinterpret_cast<std::uintptr_t>(pieces.src) |
                             reinterpret_cast<std::uintptr_t>(pieces.dst) | pieces.row_bytes |
                             pieces.src_row | pieces.dst_row | pieces.src_batch | pieces.dst_batch;
  std::size_t unit = sizeof(std::uint64_t);
  while (bits % unit != 0) unit /= 2;
  with_word(unit, [&]<class Unit>(Type<Unit>) { start_in<Unit>(pieces, stream); });
  return outcome(true);
}

cudaError_t start(const Arguments<program::Fill>& call, cudaStream_t stream) {
  const program::Fill& op = call.op;
  Shape shape{};
  for (int d = 0; d < 3; ++d) {
    shape.extents[d] = op.shard.extents[d];
    shape.local[d] = op.shard.local[d];
    shape.global[d] = op.shard.global[d];
  }
  shape.first = op.shard.base;
  const std::uint64_t count = shape.extents[0] * shape.extents[1] * shape.extents[2];
  if (count == 0) return cudaSuccess;
  const program::FillGrid grid{program::fill_origin(op.key), op.range, op.one_in};
  const double scale = program::power_of_two(op.exponent);
  const OperandAt dst = call[&program::Fill::dst];
  return outcome(with_any(dst.type, [&]<class T>(Type<T>) {
    const auto with = [&](auto value_of) {
      start_kernel(fill<T, decltype(value_of)>, blocks_for(count), block_threads, stream,
                   reinterpret_cast<T*>(dst.data), shape, value_of);
      return true;
    };
    if (op.source == program::FillSource::random) return with(Integers<T>{grid, scale});
    if constexpr (std::is_integral_v<T>) {
      return op.source == program::FillSource::constant &&
             with(Same<T>{program::constant_as<T>(op.value)});
    } else if (op.source == program::FillSource::normal) {
      return with(Normal<T>{grid, scale});
    } else {
      return with(Same<T>{T(op.value)});  // rounds once, for narrow types too
    }
  }));
}

cudaError_t start(const Arguments<program::Add>& call, cudaStream_t stream) {
  using Op = program::Add;
  const Extents extents{call.op.rows, call.op.columns};
  if (extents.rows * extents.columns == 0) return cudaSuccess;
  const auto launch = [&]<class T>(Type<T>) {
    start_elements(add<T>, extents, stream, in<T>(call[&Op::a]), in<T>(call[&Op::b]),
                   out<T>(call[&Op::dst]), program::constant_as<Compute<T>>(call.op.scale));
    return true;
  };
  return outcome(with_float(call.type, launch) || with_integer(call.type, launch));
}

cudaError_t start(const Arguments<program::Checksum>& call, cudaStream_t stream) {
  const cudaError_t cleared =
      cudaMemsetAsync(call[&program::Checksum::sum].data, 0, 2 * sizeof(Word64), stream);
  const bool is_empty = std::uint64_t{call.op.batch} * call.op.rows * call.op.columns == 0;
  if (cleared != cudaSuccess || is_empty) return cleared;
  with_word(program::element_size(call.type),
            [&]<class Word>(Type<Word>) { start_as<Word>(call, stream); });
  return outcome(true);
}

cudaError_t start(const Arguments<Update>& call, cudaStream_t stream) {
  if (call.op.weight.count == 0) return cudaSuccess;
  if (!has_kernel(call)) return cudaErrorNotSupported;
  const program::DType gradient_type = call[&Update::gradient].type;
  if (gradient_type == program::DType::f64) {
    start_as<double, double, double>(call, stream);
    return cudaGetLastError();
  }
  return outcome(with_float(gradient_type, [&]<class Gradient>(Type<Gradient>) {
    return with_float(call[&Update::weight].type, [&]<class Weight>(Type<Weight>) {
      if constexpr (!std::is_same_v<Gradient, double> && !std::is_same_v<Weight, double>) {
        start_as<float, Gradient, Weight>(call, stream);
        return true;
      } else {
        return false;
      }
    });
  }));
}

}  // namespace isoscale::executor::cuda
