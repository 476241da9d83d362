// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
// Imports the parts of ECharts that the charts use; the page does not contain the other parts.
import { BarChart, CustomChart, LineChart, ScatterChart } from "echarts/charts";
import {
  DataZoomComponent, GridComponent, LegendComponent, MarkAreaComponent, MarkLineComponent, TitleComponent, TooltipComponent,
  VisualMapComponent,
} from "echarts/components";
import { init, use } from "echarts/core";
import { CanvasRenderer, SVGRenderer } from "echarts/renderers";
import LRU from "zrender/lib/core/LRU.js";

// zrender caches the widths of texts in an object, with the text as key. For a host called "__proto__" or "constructor" it
// would find and change a property that all objects have. A zero byte at the end of each key prevents this, since no such
// property's name ends with it.
for (const name of ["get", "put"]) {
  const method = LRU.prototype[name];
  LRU.prototype[name] = function (key, ...value) {
    return method.call(this, `${key}\0`, ...value);
  };
}

use([
  BarChart, CanvasRenderer, CustomChart, DataZoomComponent, GridComponent, LegendComponent, LineChart, MarkAreaComponent,
  MarkLineComponent, SVGRenderer, ScatterChart, TitleComponent, TooltipComponent, VisualMapComponent,
]);

export { init };
