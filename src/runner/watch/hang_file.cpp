// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "runner/watch/hang_file.hpp"

#include <fmt/format.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/text.hpp"
#include "base/utc.hpp"
#include "results/files.hpp"
#include "results/output.hpp"
#include "results/run_files.hpp"

namespace isoscale::runner {

std::filesystem::path write_hang_file(const HangOf& which, const RollCall::Result& found) {
  using nlohmann::json;
  json culprits = json::array(), ranks = json::array();
  for (const Culprit& culprit : found.hang.culprits) {
    culprits.push_back({{"rank", culprit.rank}, {"what", culprit.what}});
  }
  for (const RankState& state : found.states) ranks.push_back(json::parse(to_json(state)));
  const json whole{{"created", base::utc_now()},
                   {"timeout", which.timeout.value()},
                   {"sentence", found.sentence},
                   {"first_op", found.hang.first_op},
                   {"waiting", found.hang.waiting},
                   {"absent", found.hang.absent},
                   {"silent", found.hang.silent},
                   {"culprits", culprits},
                   {"ranks", ranks}};
  std::filesystem::path path = results::resolved_output(which.run_file);
  const bool is_most = 2 * found.states.size() >= static_cast<std::size_t>(which.ranks);
  const int speaker =
      found.leader < 0 && !found.states.empty() ? found.states.front().rank : found.leader;
  if (!is_most) {
    path += fmt::format(".hang-rank{}.json", speaker);
  } else {
    path += which.number == 1 ? ".hang.json" : fmt::format(".hang-{}.json", which.number);
  }
  results::TemporaryFile temporary{path.parent_path()};
  std::ofstream out{temporary.path()};
  out << whole.dump(2, ' ', false, json::error_handler_t::replace) << '\n';
  out.close();
  if (!out) throw base::Error("cannot write " + path.string());
  static_cast<void>(temporary.publish(path, results::Publish::replace));
  return path;
}

}  // namespace isoscale::runner
