// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
// The parts of ECharts that the charts use; everything else stays out of the page.
import { BarChart, CustomChart, LineChart, ScatterChart } from "echarts/charts";
import {
  DataZoomComponent,
  GridComponent,
  LegendComponent,
  MarkAreaComponent,
  MarkLineComponent,
  TitleComponent,
  TooltipComponent,
  VisualMapComponent,
} from "echarts/components";
import { init, use } from "echarts/core";
import { CanvasRenderer, SVGRenderer } from "echarts/renderers";
import LRU from "zrender/lib/core/LRU.js";

// zrender remembers the widths of texts in an object by text: a host that is called "__proto__" or
// "constructor" would find what all objects have, and change it. No such name ends like this.
for (const name of ["get", "put"]) {
  const method = LRU.prototype[name];
  LRU.prototype[name] = function (key, ...value) {
    return method.call(this, `${key}\0`, ...value);
  };
}

use([
  BarChart,
  CanvasRenderer,
  CustomChart,
  DataZoomComponent,
  GridComponent,
  LegendComponent,
  LineChart,
  MarkAreaComponent,
  MarkLineComponent,
  SVGRenderer,
  ScatterChart,
  TitleComponent,
  TooltipComponent,
  VisualMapComponent,
]);

export { init };
