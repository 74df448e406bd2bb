/* How the products with several columns walk a matrix; each matmul_*.c includes this once, after it has defined
 *
 *   TILE_COLUMNS, TILE_PANELS     columns that share unpacked weights; panels that share the layout of a group's inputs
 *   CODE_BYTES, SCALE_BYTES       of one panel and block; of one panel and group
 *   TileColumn                    what it keeps of a column and group, and `float *y`, the results of a band's panels
 *   lay_out_group()               fills a TileColumn, but for y, with a group of n_blocks blocks
 *   add_blocks()                  adds the products of one panel with that group to rows first .. first+7 of each y
 */
#ifndef COLIBRI_MATMUL_TILES_H
#define COLIBRI_MATMUL_TILES_H

#include <string.h>

/* Whole panels, whose y are zero before. */
static void add_panels(const Matrix *w, const Column *columns, TileColumn *tile, int n_columns, int first_panel,
                       int last_panel) {
    const int n_blocks = (w->cols + BLOCK_INPUTS - 1) / BLOCK_INPUTS;
    const int n_groups = (n_blocks + GROUP_BLOCKS - 1) / GROUP_BLOCKS;
    const size_t code_stride = (size_t)n_blocks * CODE_BYTES; /* from one panel to the next */
    const size_t scale_stride = (size_t)n_groups * SCALE_BYTES;
    const uint8_t *first_codes = (const uint8_t *)w->codes + (size_t)first_panel * code_stride;
    const uint8_t *first_scales = (const uint8_t *)w->scales + (size_t)first_panel * scale_stride;
    for (int group = 0; group < n_groups; group++) {
        const int rest_blocks = n_blocks - group * GROUP_BLOCKS;
        const int group_blocks = rest_blocks < GROUP_BLOCKS ? rest_blocks : GROUP_BLOCKS;
        const uint8_t *codes = first_codes + (size_t)group * GROUP_BLOCKS * CODE_BYTES;
        const uint8_t *scales = first_scales + (size_t)group * SCALE_BYTES;
        for (int c = 0; c < n_columns; c++)
            lay_out_group(&tile[c], columns[c].x, group, group_blocks);
        for (int panel = 0; panel < last_panel - first_panel; panel++, codes += code_stride, scales += scale_stride)
            add_blocks(tile, n_columns, panel * PANEL_ROWS, codes, scales, group_blocks);
    }
}

/* The last panel, of which only the first n_rows rows exist. */
static void multiply_part_of_panel(const Matrix *w, const Column *columns, TileColumn *tile, int n_columns, int panel,
                                   int n_rows) {
    float rows[TILE_COLUMNS][PANEL_ROWS] = {{0.0f}};
    for (int c = 0; c < n_columns; c++)
        tile[c].y = rows[c];
    add_panels(w, columns, tile, n_columns, panel, panel + 1);
    for (int c = 0; c < n_columns; c++)
        memcpy(columns[c].y + panel * PANEL_ROWS, rows[c], (size_t)n_rows * sizeof rows[c][0]);
}

/* One tile of columns and one band of panels. */
static void multiply_band(const Matrix *w, const Column *columns, int n_columns, int first_panel, int last_panel) {
    TileColumn tile[TILE_COLUMNS];
    const int whole_panels = w->rows / PANEL_ROWS;
    const int end = last_panel < whole_panels ? last_panel : whole_panels;
    for (int c = 0; c < n_columns; c++) {
        tile[c].y = columns[c].y + first_panel * PANEL_ROWS;
        memset(tile[c].y, 0, (size_t)(end - first_panel) * PANEL_ROWS * sizeof *tile[c].y);
    }
    add_panels(w, columns, tile, n_columns, first_panel, end);
    if (end < last_panel)
        multiply_part_of_panel(w, columns, tile, n_columns, end, w->rows - end * PANEL_ROWS);
}

/* Cuts the columns into as few tiles as there can be, of nearly equal width, because what a tile shares costs the same
 * for few columns as for many. */
static void multiply_tiles(const Matrix *w, const Column *columns, int n_columns, int first_panel, int last_panel) {
    for (int n_tiles = (n_columns + TILE_COLUMNS - 1) / TILE_COLUMNS; n_tiles > 0; n_tiles--) {
        const int width = (n_columns + n_tiles - 1) / n_tiles;
        for (int panel = first_panel; panel < last_panel; panel += TILE_PANELS)
            multiply_band(w, columns, width, panel,
                          panel + TILE_PANELS < last_panel ? panel + TILE_PANELS : last_panel);
        columns += width;
        n_columns -= width;
    }
}

#endif
