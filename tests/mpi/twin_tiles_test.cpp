// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

// Images in tiles give what the whole image gives on one rank, and what loops over pixels give.

#include "tests/executor/sketch.hpp"
#include "tests/mpi/twin_cases.hpp"

namespace isoscale::runner {
namespace {

using workloads::Request;

const workloads::Workload& tiles() { return workloads::find_workload("tiles"); }

Request request_of(const std::string& options,
                   program::Precision precision = program::Precision::f64) {
  return {.precision = precision, .options = workloads::options_of(options)};
}

std::vector<mesh::Shape> grids_of(int ranks) {
  return meshes_where(ranks, [](const mesh::Shape& mesh) { return mesh.ep * mesh.pp == 1; });
}

/// Collective: a point of the workload computes what one rank computes.
void expect_equal(const Ranks& ranks, executor::Executor& executor, const mesh::Shape& mesh,
                  const Request& base, workloads::Scaling scaling = workloads::Scaling::strong) {
  const Request point = tiles().scale(base, mesh, scaling);
  const measure::Verdict verdict = measure::verify_twin(tiles(), point, executor, ranks.world);
  const std::string name =
      fmt::format("{} {} {}{}", mesh::to_string(mesh), program::name(base.precision),
                  workloads::name(scaling), workloads::text_of(base.options));
  EXPECT_TRUE(verdict.ok) << name << ": " << verdict.detail;
  if (base.precision == program::Precision::f64) {
    EXPECT_LT(verdict.difference.value_or(1), f64_difference) << name;
  } else {
    // The check is not vacuous: these types do round.
    EXPECT_GT(verdict.difference.value_or(0), measure::tolerance(base.precision) / 1000) << name;
  }
}

TEST(TilesTwin, OfEveryGridEqualsOneRank) {
  const Ranks ranks;
  std::size_t turn = 0;
  for (const mesh::Shape& mesh : grids_of(ranks.world.size())) {
    ++turn;
    for (unsigned level = 0; level < 8; ++level) {
      const bool is_fixed = (level & 1U) != 0, waits = (level & 2U) != 0,
                 is_large = (level & 4U) != 0;
      // The others turn with these: each pair of levels meets.
      const bool odd = is_fixed != (waits != is_large);
      const Request base = request_of(fmt::format(
          "image=48x96 channels=3 layers=3 batch=16 boundary={} overlap={} kernel={} optimizer={}",
          is_fixed ? "fixed" : "periodic", waits ? "off" : "on", is_large ? "5" : "3",
          odd ? "sgd" : "adam"));
      // Streams in turn: over two grids each set of levels is played both ways.
      executor::Executor& executor = ++turn % 2 == 0 ? *ranks.threads : *ranks.folded;
      expect_equal(ranks, executor, mesh, base,
                   odd ? workloads::Scaling::strong : workloads::Scaling::weak);
    }
  }
}

TEST(TilesTwin, OfOtherPrecisionsEqualsOneRankInF64) {
  using program::Precision;
  const Ranks ranks;
  int turn = 0;
  for (const mesh::Shape& mesh : grids_of(ranks.world.size())) {
    ++turn;
    for (const Precision precision :
         {Precision::f32, Precision::tf32, Precision::f16, Precision::bf16}) {
      const std::string kernel = ++turn % 2 == 0 ? "3" : "5";
      expect_equal(ranks, *ranks.emulating, mesh,
                   request_of("image=48 batch=8 kernel=" + kernel, precision));
    }
  }
}

TEST(TilesTwin, TilesAsSmallAsTheHaloEqualOneRank) {
  // No pixel is inside: every pixel needs a neighbour's, and every pixel is a neighbour's.
  const Ranks ranks;
  for (const mesh::Shape& mesh : grids_of(ranks.world.size())) {
    for (const char* boundary : {"periodic", "fixed"}) {
      expect_equal(ranks, *ranks.threads, mesh,
                   request_of(fmt::format("image={}x{} kernel=5 boundary={} batch=8", 2 * mesh.cp,
                                          2 * mesh.tp, boundary)));
    }
  }
}

/// Tensors that a rank alone holds, and the images that setup draws, in their global order.
measure::Tensors tensors_of(executor::Session& session, const program::RankProgram& program) {
  std::vector<program::Observable> all = program.observables;
  for (const program::Op& op : program.setup.ops) {
    const auto* const fill = std::get_if<program::Fill>(&op.payload);
    if (fill == nullptr || fill->source != program::FillSource::random) continue;
    if (program.buffers[fill->dst.buffer].role != program::Role::input) continue;
    all.push_back({.name = "input", .slice = fill->dst, .shard = fill->shard});
  }
  measure::Tensors tensors;
  for (const program::Observable& observable : all) {
    const auto local = executor::get<double>(session, observable.slice);
    std::vector<double>& whole = tensors[observable.name];
    measure::for_each_element(observable.shard, {}, [&](std::uint64_t from, std::uint64_t to) {
      if (to >= whole.size()) whole.resize(to + 1);
      whole[to] = local[from];
    });
  }
  return tensors;
}

/// The stack as its definition has it: for each pixel, a sum over the window around it. Images are
/// [row][column][sample][channel], kernels [row][column][channel in][channel out].
struct Direct {
  using Values = std::vector<double>;

  int kernel;
  bool periodic;
  int rows = 5, columns = 7, samples = 2, channels = 3, layers = 3;

  [[nodiscard]] Values layer(const Values& in, const Values& weights) const {
    Values out = in;
    const int p = kernel / 2;
    for (int r = 0; r < rows; ++r) {
      for (int c = 0; c < columns; ++c) {
        for (int i = 0; i < kernel; ++i) {
          for (int j = 0; j < kernel; ++j) {
            int row = r + i - p, column = c + j - p;
            if (periodic) {
              row = (row + rows) % rows;
              column = (column + columns) % columns;
            } else if (row < 0 || row >= rows || column < 0 || column >= columns) {
              continue;
            }
            add_tap(in, weights, pixel(row, column), pixel(r, c), i * kernel + j, out);
          }
        }
      }
    }
    return out;
  }

  [[nodiscard]] Values output(const Values& input, const std::vector<Values>& weights) const {
    Values values = input;
    for (const Values& kernel_of_layer : weights) values = layer(values, kernel_of_layer);
    return values;
  }

  [[nodiscard]] double loss(const Values& input, const std::vector<Values>& weights) const {
    double sum = 0;
    for (const double y : output(input, weights)) sum += y * y / 2;
    return sum;
  }

 private:
  [[nodiscard]] std::size_t pixel(int row, int column) const {
    return static_cast<std::size_t>((row * columns + column) * samples * channels);
  }
  void add_tap(const Values& in, const Values& weights, std::size_t from, std::size_t to, int tap,
               Values& out) const {
    const auto c = static_cast<std::size_t>(channels);
    const double* const w = weights.data() + static_cast<std::size_t>(tap) * c * c;
    for (std::size_t s = 0; s < static_cast<std::size_t>(samples); ++s) {
      for (std::size_t n = 0; n < c; ++n) {
        double sum = 0;
        for (std::size_t k = 0; k < c; ++k) sum += in[from + s * c + k] * w[k * c + n];
        out[to + s * c + n] += 0.5 / layers * sum;
      }
    }
  }
};

/// One step of a stack on this rank alone, in f64.
struct Stepped {
  measure::Tensors before, after;
  double update;  ///< what a gradient is multiplied with before it is taken from its weight
};

Stepped step_alone(const std::string& options, const comm::Communicator& world) {
  Request base = request_of(options);
  base.keep = workloads::Keep::observables;
  const program::ProgramSet set =
      tiles().build(tiles().scale(base, {}, workloads::Scaling::strong));
  const comm::Communicator self = world.split(world.rank(), 0);
  const auto host = executor::make_host_executor({.streams = executor::HostStreams::folded});
  const auto session = host->prepare(set, self);
  session->play({.section = program::Section::setup});
  Stepped result;
  result.before = tensors_of(*session, set.of(0));
  session->play({.section = program::Section::step});
  result.after = tensors_of(*session, set.of(0));
  const auto& update = std::get<program::Update>(set.of(0).step().ops.back().payload);
  result.update = update.rate * update.gradient_scale;
  return result;
}

TEST(TilesDirect, LoopsOverPixelsGiveTheSameOutputsAndGradients) {
  const Ranks ranks;
  for (const char* boundary : {"periodic", "fixed"}) {
    for (const int kernel : {3, 5}) {
      const Direct direct{.kernel = kernel, .periodic = boundary[0] == 'p'};
      const Stepped step =
          step_alone(fmt::format("image=5x7 channels=3 layers=3 batch=2 boundary={} kernel={}",
                                 boundary, kernel),
                     ranks.world);
      std::vector<std::vector<double>> weights;
      for (const char* layer : {"layer0", "layer1", "layer2"}) {
        weights.push_back(step.before.at(layer + std::string{".kernel.weight"}));
      }
      const std::vector<double>& input = step.before.at("input");
      const std::vector<double> expected = direct.output(input, weights);
      const std::vector<double>& output = step.after.at("output");
      ASSERT_EQ(output.size(), expected.size());
      for (std::size_t i = 0; i < output.size(); ++i) {
        EXPECT_NEAR(output[i], expected[i], 1e-13) << boundary << " element " << i;
      }
      for (std::size_t layer = 0; layer < weights.size(); ++layer) {
        const std::string name = fmt::format("layer{}.kernel", layer);
        const std::vector<double>& gradient = step.after.at(name + ".gradient");
        ASSERT_EQ(gradient.size(), weights[layer].size());
        for (std::size_t i = 0; i < gradient.size(); i += 4) {  // 4 divides neither 3 nor 5
          // Differences of a polynomial of degree 2 have no error but rounding.
          constexpr double h = 0.125;
          auto varied = weights;
          varied[layer][i] += h;
          const double up = direct.loss(input, varied);
          varied[layer][i] -= 2 * h;
          const double down = direct.loss(input, varied);
          EXPECT_NEAR(gradient[i], (up - down) / (2 * h), 1e-10) << name << " element " << i;
          const double weight = step.after.at(name + ".weight")[i];
          EXPECT_NEAR(weights[layer][i] - weight, step.update * gradient[i], 1e-14);
        }
      }
    }
  }
}

TEST(TilesDirect, ValuesStayWithinRangeInDeepStacks) {
  const Ranks ranks;
  for (const char* layers : {"2", "64"}) {
    const Stepped step =
        step_alone(fmt::format("image=12 channels=8 layers={} batch=2", layers), ranks.world);
    const auto rms = [](const std::vector<double>& values) {
      double sum = 0;
      for (const double value : values) sum += value * value;
      return std::sqrt(sum / static_cast<double>(values.size()));
    };
    const double input = rms(step.before.at("input"));
    EXPECT_GT(rms(step.after.at("output")), 0.5 * input) << layers;
    EXPECT_LT(rms(step.after.at("output")), 4 * input) << layers;
    const double pixels = 12 * 12 * 2;
    for (const auto& [name, values] : step.after) {
      if (!name.ends_with("kernel.gradient")) continue;
      // Per pixel, before the residual gain of 0.5 / layers.
      const double gradient = rms(values) / pixels * std::stod(layers) / 0.5;
      EXPECT_GT(gradient, 0.01) << name << " of " << layers;
      EXPECT_LT(gradient, 10) << name << " of " << layers;
    }
  }
}

}  // namespace
}  // namespace isoscale::runner
